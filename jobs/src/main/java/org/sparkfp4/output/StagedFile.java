package org.sparkfp4.output;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicRename;

/**
 * A file that is written under a name of its own, where the storage can rename, and that gets its final name when it is
 * whole. One that is closed before that is removed.
 */
public final class StagedFile implements ShardOutput {
  private final Storage storage;
  private final Path path;
  private final Path finalPath;
  private final ShardOutput out;
  private boolean closed;

  /**
   * Begins a file.
   *
   * @param attempt the name that it has until it is whole
   * @param finalPath the name that it gets
   */
  StagedFile(Storage storage, Path attempt, Path finalPath) throws IOException {
    this.storage = storage;
    this.path = storage.atomicRename() ? attempt : finalPath;
    this.finalPath = finalPath;
    try {
      storage.fs().mkdirs(finalPath.getParent());
    } catch (IOException e) {
      throw NamedShardOutput.failure(finalPath, e);
    }

    this.out = storage.create(path);
  }

  /** The final name. */
  String name() {
    return finalPath.getName();
  }

  @Override
  public void write(ByteBuffer bytes) throws IOException {
    out.write(bytes);
  }

  @Override
  public long length() {
    return out.length();
  }

  /** Makes the file durable and gives it its name; returns the SHA-256 of its bytes, lower-case hexadecimal. */
  @Override
  public String finish() throws IOException {
    String sha256 = out.finish();
    if (!path.equals(finalPath)) {
      AtomicRename.replace(storage.fs(), path, finalPath);
    }

    closed = true;
    return sha256;
  }

  @Override
  public void close() throws IOException {
    if (closed) {
      return;
    }

    closed = true;
    out.close();
    if (!out.isGoneWhenUnfinished()) {
      storage.fs().delete(path, false);
    }
  }
}
