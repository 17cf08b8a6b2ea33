package org.sparkfp4.files;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.StandardCopyOption;
import org.apache.hadoop.fs.FileContext;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UnsupportedFileSystemException;

/** Gives a finished file its name, in the place of one that is there. */
public final class AtomicRename {
  private AtomicRename() {}

  /**
   * Renames {@code from} to {@code to}: in one step on this machine and on HDFS, where readers see the old file or the
   * new one; a file system that Hadoop has no such rename for is without either for a moment.
   *
   * @throws IOException naming both files, if the file system refuses
   */
  public static void replace(FileSystem fs, Path from, Path to) throws IOException {
    if (fs.getUri().getScheme().equals("file")) {
      Files.move(local(from), local(to), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      return;
    }

    FileContext context;
    try {
      context = FileContext.getFileContext(fs.getUri(), fs.getConf());
    } catch (UnsupportedFileSystemException e) {
      inTwoSteps(fs, from, to);
      return;
    }

    context.rename(from, to, Options.Rename.OVERWRITE);
  }

  /** {@code FileSystem.rename} may or may not replace. */
  private static void inTwoSteps(FileSystem fs, Path from, Path to) throws IOException {
    fs.delete(to, false);
    if (!fs.rename(from, to)) {
      throw new IOException("Cannot rename " + from + " to " + to + ": the file system refused without a reason");
    }
  }

  private static java.nio.file.Path local(Path path) {
    return java.nio.file.Path.of(path.toUri().getPath());
  }
}
