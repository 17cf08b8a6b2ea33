package org.sparkfp4.sink;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.safetensors.RawFileSystem;

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

  /** The file's path on this machine's own file system, or null when the storage is another. */
  java.nio.file.Path local(Path path) {
    return fs.getUri().getScheme().equals("file") ? java.nio.file.Path.of(path.toUri().getPath()) : null;
  }
}
