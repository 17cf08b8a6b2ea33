package org.sparkfp4.formats;

/** Rounding to a binary floating-point format narrower than binary32; shared by E2M1, E4M3 and binary16. */
final class Minifloat {
  private static final int F32_MANTISSA_BITS = 23;
  private static final int F32_BIAS = 127;

  private Minifloat() {}

  /**
   * Rounds to the nearest value of the narrow format, ties to the even code.
   *
   * <p>The format's values are evenly spaced within a binade, and its subnormals continue the spacing of its lowest
   * binade. Adding 2^23 spacings pushes everything below one spacing out of the float's mantissa, so the addition
   * itself rounds, to nearest even, and the low mantissa bits of the sum count the spacings. Where the rounding reaches
   * the next binade the count carries into the code's exponent field, as it should.
   *
   * @param magnitude bits of a finite float with a clear sign bit, at most the format's largest value (or the power of
   *     two above it, where the format has infinities)
   * @param mantissaBits the format's explicit mantissa bits
   * @param lowestExponent unbiased exponent of the format's smallest normal value
   * @return the code without its sign
   */
  static int round(int magnitude, int mantissaBits, int lowestExponent) {
    int lowest = F32_BIAS + lowestExponent;
    int exponent = Math.max(magnitude >>> F32_MANTISSA_BITS, lowest);
    int magicBits = (exponent + F32_MANTISSA_BITS - mantissaBits) << F32_MANTISSA_BITS;
    float sum = Float.intBitsToFloat(magnitude) + Float.intBitsToFloat(magicBits);
    int spacings = Float.floatToRawIntBits(sum) - magicBits;
    return spacings + ((exponent - lowest) << mantissaBits);
  }

  /** The float's bits without the sign. Non-negative floats, infinity and NaN last, order like these integers. */
  static int magnitude(float x) {
    return Float.floatToRawIntBits(x) & 0x7FFF_FFFF;
  }

  /** The value itself, of NaN the canonical one: which NaN a product is depends on the processor. */
  static float canonical(float x) {
    return Float.isNaN(x) ? Float.NaN : x;
  }
}
