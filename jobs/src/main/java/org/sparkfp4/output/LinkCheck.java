package org.sparkfp4.output;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.fs.FileSystem;

/**
 * Refuses an output with symbolic links among what a run writes or removes: it knows names, and would follow them to
 * wherever somebody pointed them. The folder itself may be reached by a link.
 */
public final class LinkCheck {
  private LinkCheck() {}

  /** Looks at a folder that is there, where its file system is this machine's. */
  public static void require(FileSystem fs, org.apache.hadoop.fs.Path folder) throws IOException {
    if (fs.getUri().getScheme().equals("file")) {
      require(Path.of(folder.toUri().getPath()));
    }
  }

  /** Looks at what is directly in a folder that is there, and at all that is in {@link StagingFolder}. */
  static void require(Path folder) throws IOException {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
      for (Path entry : entries) {
        requireNone(folder, entry);
      }
    }

    Path staging = folder.resolve(StagingFolder.NAME);
    if (Files.isDirectory(staging, LinkOption.NOFOLLOW_LINKS)) {
      List<Path> all;
      try (Stream<Path> tree = Files.walk(staging)) {
        all = tree.toList();
      }

      for (Path entry : all) {
        requireNone(folder, entry);
      }
    }
  }

  private static void requireNone(Path folder, Path entry) throws IOException {
    if (Files.isSymbolicLink(entry)) {
      throw new IOException(
          "Cannot write to file:" + folder + ": " + folder.relativize(entry)
              + " in it is a symbolic link, which would lead a run elsewhere; remove it, or choose another folder");
    }
  }
}
