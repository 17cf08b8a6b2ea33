package org.sparkfp4.source;

import java.io.Serializable;

/**
 * The bytes of a payload.
 *
 * @param file number of the file in its partition's list
 * @param offset first byte in that file
 * @param length the payload's bytes, at most {@link #MAX_LENGTH}
 * @param gather where its elements are, from the first byte on, or null when they follow one another
 */
record ByteRange(int file, long offset, long length, Gather gather) implements Serializable {
  /** The largest array that the JVM gives, for readers that go row by row; Arrow's 32-bit offsets end there too. */
  static final long MAX_LENGTH = Integer.MAX_VALUE - 8;

  ByteRange(int file, long offset, long length) {
    this(file, offset, length, null);
  }

  /** Bytes of the file from the first that is wanted to the last. */
  long span() {
    return gather == null ? length : gather.span();
  }
}
