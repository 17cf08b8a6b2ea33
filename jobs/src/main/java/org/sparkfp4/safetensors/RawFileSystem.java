package org.sparkfp4.safetensors;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * The file system of a path, without Hadoop's client-side checksums for local files.
 *
 * <p>Checkpoints come from elsewhere and have no {@code .crc} files; a left-over one would fail a good file, and
 * reading through the checksum layer costs a copy.
 */
public final class RawFileSystem {
  private RawFileSystem() {}

  public static FileSystem of(Path path, Configuration configuration) throws IOException {
    FileSystem fileSystem = path.getFileSystem(configuration);
    return fileSystem instanceof ChecksumFileSystem checked ? checked.getRawFileSystem() : fileSystem;
  }
}
