package org.sparkfp4.jobs;

import java.io.IOException;
import java.nio.file.Files;
import org.apache.hadoop.fs.Path;

/** The source is never changed, so an output may not be in it, nor it in the output, by whatever name. */
final class SeparateFolders {
  private SeparateFolders() {}

  /**
   * Refuses folders of which one is or holds the other. On this machine's own file system symbolic links are followed.
   *
   * @param input the source, a qualified path
   * @param output the output, likewise; it need not be there
   */
  static void require(Path input, Path output) throws IOException {
    String in = real(input) + "/";
    String out = real(output) + "/";
    if (in.startsWith(out) || out.startsWith(in)) {
      throw new JobException(
          "Cannot write to " + output + ": the source " + input + " is the same folder or one inside the other; choose "
              + "another --output");
    }
  }

  /** Refuses a folder for a report that is, or is in, a checkpoint's: it might replace a file of it. */
  static void requireOutside(Path report, Path checkpoint) throws IOException {
    if ((real(report) + "/").startsWith(real(checkpoint) + "/")) {
      throw new JobException("Cannot write the report to " + report + ": it is in the checkpoint " + checkpoint
          + "; choose a folder outside");
    }
  }

  private static String real(Path path) throws IOException {
    if (!"file".equals(path.toUri().getScheme())) {
      return path.toString();
    }

    java.nio.file.Path local = java.nio.file.Path.of(path.toUri().getPath());
    java.nio.file.Path there = local;
    while (!Files.exists(there)) {
      there = there.getParent();
    }

    return "file:" + there.toRealPath().resolve(there.relativize(local));
  }
}
