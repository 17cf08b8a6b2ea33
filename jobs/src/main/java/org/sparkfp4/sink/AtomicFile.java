package org.sparkfp4.sink;

import java.io.IOException;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;

/** Small files that are either whole or not there. */
public final class AtomicFile {
  private AtomicFile() {}

  /** Writes {@code content} beside {@code file} and renames it there, replacing what was there. */
  public static void write(FileSystem fs, Path file, byte[] content) throws IOException {
    fs.mkdirs(file.getParent());
    Path fresh = new Path(file.getParent(), "." + file.getName() + "." + UUID.randomUUID());
    try {
      try (FSDataOutputStream out = fs.create(fresh, true)) {
        out.write(content);
        if (out.hasCapability(StreamCapabilities.HSYNC)) {
          out.hsync();
        }
      }

      rename(fs, fresh, file);
    } finally {
      if (fs.exists(fresh)) {
        fs.delete(fresh, false);
      }
    }
  }

  /** Renames {@code from} to {@code to}, replacing what is there; file systems differ in whether rename does that. */
  static void rename(FileSystem fs, Path from, Path to) throws IOException {
    if (fs.exists(to)) {
      fs.delete(to, false);
    }

    if (!fs.rename(from, to)) {
      throw new IOException("Cannot rename " + from + " to " + to + ": the file system refused without a reason");
    }
  }
}
