package org.sparkfp4.sink;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.safetensors.AtomicRename;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * A safetensors file that is written front to back: its header first, then the tensors' bytes in the header's order. It
 * gets its name when it is whole; where the storage cannot rename, it appears whole when it is closed.
 */
public final class TensorFile implements Closeable {
  private final Storage storage;
  private final Path file;
  private final Path path;
  private final ShardOutput out;

  /**
   * Begins a file.
   *
   * @param file its name, a path in a folder that has a {@link StagingFolder}
   * @param attempt tells this attempt from any other
   * @param commit as {@link Storage#of} takes it
   */
  public TensorFile(Path file, String attempt, String commit, Configuration conf) throws IOException {
    this.storage = Storage.of(file, conf, commit);
    this.file = file;
    this.path =
        storage.atomicRename()
            ? new StagingFolder(storage.fs(), file.getParent()).attempt(file.getName() + "-" + attempt)
            : file;
    try {
      storage.fs().mkdirs(path.getParent());
      java.nio.file.Path local = storage.local(path);
      this.out = new NamedShardOutput(
          path, local != null ? new LocalShardOutput(local) : new StreamShardOutput(storage.fs().create(path, true)));
    } catch (IOException e) {
      throw NamedShardOutput.failure(path, e);
    }
  }

  /** Writes the header, whose tensors follow one another without gaps. */
  public void begin(List<TensorInfo> tensors) throws IOException {
    out.write(ByteBuffer.wrap(SafetensorsHeader.encode(tensors, SafetensorsHeader.FORMAT_PT)));
  }

  /** Appends what is left of {@code bytes}. */
  public void write(ByteBuffer bytes) throws IOException {
    out.write(bytes);
  }

  /** Bytes written so far, the header's among them. */
  public long length() {
    return out.length();
  }

  /** Gives the file its name; returns the SHA-256 of its bytes in hexadecimal. */
  public String finish() throws IOException {
    String sha256 = out.finish();
    if (!path.equals(file)) {
      AtomicRename.replace(storage.fs(), path, file);
    }

    return sha256;
  }

  /** Closes the file; one that is not finished is left among the attempts. */
  @Override
  public void close() throws IOException {
    out.close();
  }
}
