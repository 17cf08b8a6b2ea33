package org.sparkfp4.formats;

/** The scale type of OCP Microscaling Formats 1.0, 5.4.1: one byte s that means 2^(s - 127). 255 is NaN. */
public final class E8M0 {
  /** The byte that means NaN. */
  public static final int NAN = 0xFF;

  /** What the exponent is stored above. */
  static final int BIAS = 127;

  private E8M0() {}

  /** The value of a byte, exactly; 0 is the subnormal 2^-127. Only the low 8 bits count. */
  public static float decode(int code) {
    int s = code & 0xFF;
    if (s == NAN) {
      return Float.NaN;
    }

    return s == 0 ? 0x1p-127f : Float.intBitsToFloat(s << 23);
  }
}
