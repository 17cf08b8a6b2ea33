package org.sparkfp4.files;

import java.io.IOException;
import java.io.OutputStream;
import java.util.UUID;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StreamCapabilities;

/** Files that are either whole or not there. */
public final class AtomicFile {
  private AtomicFile() {}

  /** What writes a file's bytes. */
  @FunctionalInterface
  public interface Content {
    void writeTo(OutputStream out) throws IOException;
  }

  /** Writes {@code content} in the place of what was there, as {@link #write(FileSystem, Path, Content)} does. */
  public static void write(FileSystem fs, Path file, byte[] content) throws IOException {
    write(fs, file, out -> out.write(content));
  }

  /** Writes {@code content} in the place of what was there: beside it and renamed, or as one object of a store. */
  public static void write(FileSystem fs, Path file, Content content) throws IOException {
    if (RawFileSystem.isObjectStore(fs)) {
      create(fs, file, content);
      return;
    }

    fs.mkdirs(file.getParent());
    Path fresh = new Path(file.getParent(), "." + file.getName() + "." + UUID.randomUUID());
    try {
      create(fs, fresh, content);
      AtomicRename.replace(fs, fresh, file);
    } finally {
      if (fs.exists(fresh)) {
        fs.delete(fresh, false);
      }
    }
  }

  private static void create(FileSystem fs, Path file, Content content) throws IOException {
    try (FSDataOutputStream out = fs.create(file, true)) {
      content.writeTo(out);
      if (out.hasCapability(StreamCapabilities.HSYNC)) {
        out.hsync();
      }
    }
  }
}
