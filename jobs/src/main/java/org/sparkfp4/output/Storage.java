package org.sparkfp4.output;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.RawFileSystem;

/** Where an output is kept, and how a file gets its final name there. */
public record Storage(FileSystem fs, boolean atomicRename) {
  /**
   * The storage of {@code path}. On object stores a rename is a copy and a file appears whole when it is closed, so
   * shards are written under their final names there; {@code spark.fp4.commit=rename|direct} overrides the choice.
   */
  public static Storage of(Path path, Configuration conf, String commit) throws IOException {
    FileSystem fs = RawFileSystem.of(path, conf);
    boolean rename =
        switch (commit) {
          case "auto" -> !RawFileSystem.isObjectStore(fs);
          case "rename" -> true;
          case "direct" -> false;
          default ->
              throw new IllegalArgumentException(
                  "Invalid spark.fp4.commit: " + commit + "; it is auto, rename or direct");
        };
    return new Storage(fs, rename);
  }

  /**
   * Begins a file in the place of what was there.
   *
   * @throws IOException naming the file and what to do
   */
  ShardOutput create(Path path) throws IOException {
    try {
      fs.mkdirs(path.getParent());
      java.nio.file.Path local = local(path);
      return new NamedShardOutput(
          path, local != null ? new LocalShardOutput(local) : new StreamShardOutput(fs.create(path, true)));
    } catch (IOException e) {
      throw NamedShardOutput.failure(path, e);
    }
  }

  /** The file's path on this machine's own file system, or null when the storage is another. */
  private java.nio.file.Path local(Path path) {
    return fs.getUri().getScheme().equals("file") ? java.nio.file.Path.of(path.toUri().getPath()) : null;
  }
}
