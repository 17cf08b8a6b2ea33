package org.sparkfp4.files;

import java.io.IOException;

/** A source file is not the one that the driver or the plan saw. Another attempt would not help. */
public class SourceChangedException extends IOException {
  public SourceChangedException(String file, String problem) {
    super("Cannot read " + file + ": " + problem + "; do not change a checkpoint while it is read, or plan anew");
  }
}
