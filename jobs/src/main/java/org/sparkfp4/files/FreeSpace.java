package org.sparkfp4.files;

import java.io.IOException;
import java.nio.file.Files;
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

    long free = free(fs, existing);
    if (free < bytes) {
      throw new IOException(
          String.format(
              "Cannot write to %s: %,d bytes are needed and %,d are free; make room, or choose another folder",
              folder, bytes, free));
    }
  }

  /** Hadoop counts what a local file system keeps back as free too, and on HDFS the room of all replicas. */
  private static long free(FileSystem fs, Path folder) throws IOException {
    return "file".equals(fs.getUri().getScheme())
        ? Files.getFileStore(java.nio.file.Path.of(folder.toUri().getPath())).getUsableSpace()
        : fs.getStatus(folder).getRemaining() / fs.getDefaultReplication(folder);
  }
}
