package org.sparkfp4.formats;

/** IEEE 754 binary16. */
public final class Float16 {
  /** 2^16, one binade above the largest finite value: where rounding ends in the code of infinity. */
  private static final int OVERFLOW_MAGNITUDE = Float.floatToRawIntBits(0x1p16f);

  private Float16() {}

  /** Widens exactly, the payload of a NaN included. */
  public static float toFloat(short bits) {
    int sign = (bits & 0x8000) << 16;
    int magnitude = (bits & 0x7FFF) << 13;
    boolean finite = (bits & 0x7C00) != 0x7C00;
    // The bits, moved to their places, read as a float 2^112 times too small: the biases differ by 127 - 15. The
    // product is exact and normalises the subnormals.
    int widened = finite
        ? Float.floatToRawIntBits(Float.intBitsToFloat(magnitude) * 0x1p112f)
        : 0x7F80_0000 | magnitude;
    return Float.intBitsToFloat(sign | widened);
  }

  /** Rounds to nearest, ties to even; overflows to infinity from 65520 on. NaN stays NaN, made quiet. */
  public static short fromFloat(float x) {
    int bits = Float.floatToRawIntBits(x);
    int sign = bits >>> 16 & 0x8000;
    if (Float.isNaN(x)) {
      return (short) (sign | 0x7E00 | bits >>> 13 & 0x3FF);
    }

    return (short) (sign | Minifloat.round(Math.min(Minifloat.magnitude(x), OVERFLOW_MAGNITUDE), 10, -14));
  }
}
