package org.sparkfp4.sink;

import java.io.IOException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Asks a file system whether an output will fit. */
public final class FreeSpace {
  private FreeSpace() {}

  /**
   * Refuses to begin what cannot be finished.
   *
   * @param bytes what is still to be written
   * @throws IOException naming both sizes
   */
  public static void require(FileSystem fs, Path folder, long bytes) throws IOException {
    Path existing = folder;
    while (!fs.exists(existing)) {
      existing = existing.getParent();
    }

    long free = fs.getStatus(existing).getRemaining();
    if (free < bytes) {
      throw new IOException(
          String.format(
              "Cannot write to %s: %,d bytes are needed and %,d are free; make room, or choose another folder",
              folder, bytes, free));
    }
  }
}
