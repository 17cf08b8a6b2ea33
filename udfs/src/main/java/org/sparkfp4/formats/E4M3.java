package org.sparkfp4.formats;

/**
 * FP8 E4M3FN (OCP 8-bit Floating Point 1.0): sign, 4 exponent bits of bias 7, 3 mantissa bits. Largest value 448
 * (0x7E), smallest normal 2^-6 (0x08), smallest subnormal 2^-9 (0x01). There is no infinity; 0x7F and 0xFF are NaN.
 */
public final class E4M3 {
  /** The largest finite value. */
  public static final float MAX = 448f;

  /** The smallest value above zero, 2^-9. */
  public static final float MIN_POSITIVE = 0x1p-9f;

  private static final int NAN = 0x7F;
  private static final int MAX_MAGNITUDE = Float.floatToRawIntBits(MAX);
  private static final float[] VALUES = values();

  private E4M3() {}

  /** The code nearest to {@code x}, ties to the even code; beyond 448 saturates, infinities too. NaN gives 0x7F. */
  public static int encode(float x) {
    if (Float.isNaN(x)) {
      return NAN;
    }

    int sign = Float.floatToRawIntBits(x) >>> 24 & 0x80;
    return sign | Minifloat.round(Math.min(Minifloat.magnitude(x), MAX_MAGNITUDE), 3, -6);
  }

  /** The value of a code; only its low 8 bits count. */
  public static float decode(int code) {
    return VALUES[code & 0xFF];
  }

  private static float[] values() {
    float[] values = new float[256];
    for (int code = 0; code < 256; code++) {
      int exponent = code >> 3 & 0xF;
      int mantissa = code & 7;
      float magnitude = exponent == 0 ? Math.scalb(mantissa, -9) : Math.scalb(8f + mantissa, exponent - 10);
      magnitude = (code & 0x7F) == NAN ? Float.NaN : magnitude;
      values[code] = code < 0x80 ? magnitude : -magnitude;
    }

    return values;
  }
}
