package org.sparkfp4.files;

import java.io.IOException;
import java.net.UnknownHostException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UnsupportedFileSystemException;

/**
 * The file system of a path, without Hadoop's client-side checksums for local files.
 *
 * <p>Checkpoints come from elsewhere and have no {@code .crc} files; a left-over one would fail a good file, and
 * reading through the checksum layer costs a copy.
 */
public final class RawFileSystem {
  private static final String CONNECTOR = "put its connector on the class path (spark-submit --packages)";

  private RawFileSystem() {}

  /**
   * The file system of a path.
   *
   * @throws IOException if there is none for the path's scheme, or it cannot be reached
   */
  public static FileSystem of(Path path, Configuration configuration) throws IOException {
    FileSystem fileSystem = open(path, configuration);
    return fileSystem instanceof ChecksumFileSystem checked ? checked.getRawFileSystem() : fileSystem;
  }

  /** A path as its file system has it: with its scheme, from the root on. */
  public static Path qualified(Configuration configuration, String path) throws IOException {
    Path given = new Path(path);
    return of(given, configuration).makeQualified(given);
  }

  /**
   * Whether files are objects of a store: a rename copies there, and a file appears, whole, when it is closed. So no
   * file is written under another name first.
   */
  public static boolean isObjectStore(FileSystem fileSystem) {
    return fileSystem.getUri().getScheme().matches("s3a?|s3n|gs|oss|cosn|wasbs?|o3fs|swift");
  }

  private static FileSystem open(Path path, Configuration configuration) throws IOException {
    try {
      return path.getFileSystem(configuration);
    } catch (UnsupportedFileSystemException e) {
      throw unusable(path, e.getMessage(), CONNECTOR, e);
    } catch (RuntimeException e) {
      if (e.getCause() instanceof ClassNotFoundException missing) {
        throw unusable(path, missing.getMessage(), CONNECTOR, e);
      }

      if (e.getCause() instanceof UnknownHostException host) {
        throw unusable(path, "there is no host " + host.getMessage(), "check its name", e);
      }

      throw e;
    }
  }

  private static IOException unusable(Path path, String problem, String remedy, Exception cause) {
    return new IOException(
        "Cannot use the file system of " + path + ": " + problem + "; " + remedy + ", or name a local folder", cause);
  }
}
