package org.sparkfp4.sink;

import java.nio.ByteBuffer;

/** Counts in E2M1 codes and E4M3 scales, eight bytes at a time: a fraction of what their checksum costs. */
final class CodeCounts {
  private static final long LOW_BIT_OF_NIBBLES = 0x1111111111111111L;
  private static final long LOW_BIT_OF_BYTES = 0x0101010101010101L;
  private static final long EXPONENT_OF_BYTES = 0x7878787878787878L;
  private static final long FRACTION_OF_BYTES = 0x0707070707070707L;

  private CodeCounts() {}

  /** Codes of magnitude 6, two of them a byte. */
  static long saturated(ByteBuffer packed) {
    long count = 0;
    int at = packed.position();
    for (; at <= packed.limit() - Long.BYTES; at += Long.BYTES) {
      count += saturated(packed.getLong(at));
    }

    for (; at < packed.limit(); at++) {
      count += saturated(packed.get(at) & 0xFFL);
    }

    return count;
  }

  private static int saturated(long codes) {
    return Long.bitCount(codes & codes >>> 1 & codes >>> 2 & LOW_BIT_OF_NIBBLES);
  }

  /** Scales below 2^-6 that are not zero: they have fewer significant bits than the others. */
  static long subnormal(ByteBuffer scales) {
    long count = 0;
    int at = scales.position();
    for (; at <= scales.limit() - Long.BYTES; at += Long.BYTES) {
      count += subnormal(scales.getLong(at));
    }

    for (; at < scales.limit(); at++) {
      count += subnormal(scales.get(at) & 0xFFL | ~0xFFL);
    }

    return count;
  }

  private static int subnormal(long scales) {
    // adding 0x7F to a field of at most 0x78 sets bit 7 where the field is not 0, and carries no further
    long normal = (scales & EXPONENT_OF_BYTES) + 0x7F * LOW_BIT_OF_BYTES >>> 7;
    long fraction = (scales & FRACTION_OF_BYTES) + 0x7F * LOW_BIT_OF_BYTES >>> 7;
    return Long.bitCount(~normal & fraction & LOW_BIT_OF_BYTES);
  }
}
