package org.sparkfp4.formats;

/** bfloat16: the upper half of a binary32. */
public final class BFloat16 {
  private BFloat16() {}

  /** Widens exactly. */
  public static float toFloat(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }

  /** Rounds to nearest, ties to even; overflows to infinity. NaN stays NaN, made quiet. */
  public static short fromFloat(float x) {
    int bits = Float.floatToRawIntBits(x);
    if (Float.isNaN(x)) {
      return (short) (bits >>> 16 | 0x40);
    }

    int lastKept = bits >>> 16 & 1;
    return (short) ((bits + 0x7FFF + lastKept) >>> 16);
  }

  /** The float nearest to {@code x} that bfloat16 has. */
  static float round(float x) {
    return toFloat(fromFloat(x));
  }
}
