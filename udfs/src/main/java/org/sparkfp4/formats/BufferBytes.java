package org.sparkfp4.formats;

import java.nio.ByteBuffer;

/**
 * Bytes in buffers, all of {@link #PIECE} but the last.
 *
 * @param pieces each from 0 to its limit
 */
record BufferBytes(ByteBuffer[] pieces, long size) implements Bytes {
  static final long PIECE = 1L << 30;

  private static final int SHIFT = Long.numberOfTrailingZeros(PIECE);

  @Override
  public byte get(long index) {
    return pieces[(int) (index >> SHIFT)].get((int) (index & PIECE - 1));
  }

  @Override
  public void set(long index, byte value) {
    pieces[(int) (index >> SHIFT)].put((int) (index & PIECE - 1), value);
  }
}
