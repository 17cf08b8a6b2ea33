package org.sparkfp4.sink;

import java.io.Closeable;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.safetensors.AtomicRename;

/**
 * A file that a task writes under a name of its own, where the storage can rename, and that gets its final name and its
 * record when it is whole. One that is closed before that is removed.
 */
public final class StagedFile implements Closeable {
  private final Storage storage;
  private final StagingFolder staging;
  private final Path path;
  private final Path finalPath;
  private final ShardOutput out;
  private boolean finished;

  /**
   * Begins a file.
   *
   * @param finalPath the name that it gets
   * @param index number of its record
   * @param run the run's own id
   * @param task the task's, of which no other has the same
   */
  public StagedFile(Storage storage, StagingFolder staging, Path finalPath, int index, String run, long task)
      throws IOException {
    this.storage = storage;
    this.staging = staging;
    this.finalPath = finalPath;
    this.path = storage.atomicRename() ? staging.attempt(run, index, task) : finalPath;
    try {
      storage.fs().mkdirs(path.getParent());
      storage.fs().mkdirs(finalPath.getParent());
      java.nio.file.Path local = storage.local(path);
      out = new NamedShardOutput(
          path, local != null ? new LocalShardOutput(local) : new StreamShardOutput(storage.fs().create(path, true)));
    } catch (IOException e) {
      throw NamedShardOutput.failure(path, e);
    }
  }

  /** Appends what is left of {@code bytes}. */
  public void write(ByteBuffer bytes) throws IOException {
    out.write(bytes);
  }

  /**
   * Makes the file durable, gives it its name, and leaves its record.
   *
   * @param index number of the record
   * @param fingerprint the plan's
   */
  public ShardRecord finish(int index, String fingerprint) throws IOException {
    return finish(index, fingerprint, List.of(), null);
  }

  /**
   * The same with more to record.
   *
   * @param source what was read for the file
   * @param rounded what a conversion could not keep; null of other runs
   */
  public ShardRecord finish(int index, String fingerprint, List<SourcePiece> source, RoundedScales rounded)
      throws IOException {
    String sha256 = out.finish();
    if (!path.equals(finalPath)) {
      AtomicRename.replace(storage.fs(), path, finalPath);
    }

    ShardRecord record =
        new ShardRecord(index, finalPath.getName(), out.length(), sha256, fingerprint, List.of(), source, rounded);
    staging.write(record);
    finished = true;
    return record;
  }

  @Override
  public void close() throws IOException {
    if (!finished) {
      out.close();
      if (!out.isGoneWhenUnfinished()) {
        storage.fs().delete(path, false);
      }
    }
  }
}
