package org.sparkfp4.source;

import java.util.Locale;

/** How the bytes of local files are read; files of other file systems are always read into buffers. */
enum ReadMode {
  /** Mapped, and used where they are. */
  MMAP,
  /** Read into reused buffers. */
  PREAD;

  /** The mode that options and settings call {@code text}. */
  static ReadMode of(String text) {
    return switch (text.toLowerCase(Locale.ROOT)) {
      case "mmap" -> MMAP;
      case "pread" -> PREAD;
      default -> throw new IllegalArgumentException("Invalid option read: \"" + text + "\"; give mmap or pread");
    };
  }
}
