package org.sparkfp4.safetensors;

/** How the bytes of local files are read; files of other file systems are always read into buffers. */
enum ReadMode {
  /** Mapped, and used where they are. */
  MMAP,
  /** Read into reused buffers. */
  PREAD
}
