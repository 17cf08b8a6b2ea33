package org.sparkfp4.sink;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Looks through block scales on their way into a shard: counts those that say something of the weights and refuses
 * those that no runtime can use. Eight at a time, since every scale of the output comes by.
 */
final class ScaleCounts {
  private static final long SIGNS = 0x8080808080808080L;
  private static final long ONES = 0x0101010101010101L;

  // added to a byte below 0x80, each carries into its highest bit from a certain value on
  private static final long FROM_ONE = 0x7F * ONES;
  private static final long FROM_NORMAL = 0x78 * ONES;
  private static final long FROM_LARGEST = 0x02 * ONES;
  private static final long FROM_NAN = 0x01 * ONES;

  private long subnormal;
  private long largest;

  /**
   * Adds E4M3 block scales, from position to limit.
   *
   * @throws IllegalStateException if one is zero, NaN or negative, which is a fault of the kernels
   */
  void add(ByteBuffer scales) {
    ByteBuffer bytes = scales.slice().order(ByteOrder.LITTLE_ENDIAN);
    int whole = bytes.limit() & -Long.BYTES;
    for (int i = 0; i < whole; i += Long.BYTES) {
      add(bytes.getLong(i), Long.BYTES, i);
    }

    // 2^-6 in the places behind the end counts for nothing
    long rest = 0x08 * ONES;
    for (int i = whole; i < bytes.limit(); i++) {
      int shift = Byte.SIZE * (i - whole);
      rest = rest & ~(0xFFL << shift) | (bytes.get(i) & 0xFFL) << shift;
    }

    if (whole < bytes.limit()) {
      add(rest, bytes.limit() - whole, whole);
    }
  }

  private void add(long eight, int count, int place) {
    if ((eight & SIGNS) != 0 || (eight + FROM_ONE & SIGNS) != SIGNS || (eight + FROM_NAN & SIGNS) != 0) {
      throw new IllegalStateException(String.format(
          "Cannot write block scales: among number %d to %d, %016x in memory's order reversed, one is zero, NaN or "
              + "negative", place, place + count - 1, eight));
    }

    subnormal += Long.BYTES - Long.bitCount(eight + FROM_NORMAL & SIGNS);
    largest += Long.bitCount(eight + FROM_LARGEST & SIGNS);
  }

  /** Scales below 2^-6. */
  long subnormal() {
    return subnormal;
  }

  /** Scales of 448, the largest that there is. */
  long largest() {
    return largest;
  }
}
