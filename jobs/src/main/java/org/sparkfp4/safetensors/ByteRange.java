package org.sparkfp4.safetensors;

import java.io.Serializable;

/**
 * The bytes of a payload.
 *
 * @param file number of the file in its partition's list
 * @param offset first byte in that file
 * @param length its bytes, at most {@link #MAX_LENGTH}
 */
record ByteRange(int file, long offset, long length) implements Serializable {
  /** The largest array that the JVM gives, for readers that go row by row; Arrow's 32-bit offsets end there too. */
  static final long MAX_LENGTH = Integer.MAX_VALUE - 8;
}
