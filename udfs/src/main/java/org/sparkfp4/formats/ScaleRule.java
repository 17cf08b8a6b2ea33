package org.sparkfp4.formats;

import java.util.Arrays;
import java.util.stream.Collectors;

/**
 * How the shared exponent of an MXFP4 block follows from its elements. Readers take any: the scale stands beside the
 * codes. Writers of one cache must agree.
 *
 * <p>With {@code a} the largest magnitude of the block, {@code a = m * 2^k}, {@code 1 <= m < 2}; a scale byte u means
 * 2^(u - 127). The rules are on the bits of {@code a}: no logarithm, no rounding.
 */
public enum ScaleRule {
  /**
   * The smallest power of two that clips nothing, {@code 2^ceil(log2(a / 6))}: k - 2 where m <= 1.5, else k - 1, with a
   * taken as 6 * 2^-126 at least. The rule of vLLM's indexer caches. u is from 1 to 253; a block of zeros has 1.
   */
  CEIL("ceil"),

  /**
   * {@code floor(log2(a)) - 2}, of OCP Microscaling Formats 1.0: values above 6 saturate. u is from 0 to 252; a block of
   * zeros has 0.
   */
  FLOOR("floor"),

  /** {@code floor(log2(a')) - 2} with a' being a rounded to one bit of mantissa: k - 1 from m = 1.75 on. u from 0 to 253. */
  EVEN("even"),

  /**
   * Of k - 2 and k - 1 the one with the smaller squared error, k - 2 where they are equal. u is from 1 to 253.
   *
   * <p>In units of the smaller scale: an element's error is e = y - q and e' = y - 2 q', with y the scaled magnitude, q
   * and q' the magnitudes of the codes of y and y / 2; squares are summed by {@link LaneSum}.
   */
  BEST_OF_TWO("best-of-two");

  private static final int SMALLEST = Float.floatToRawIntBits(0x1.8p-124f);
  private static final int ABOVE_ONE_AND_A_HALF = 0x3F_FFFF;
  private static final int FROM_ONE_AND_THREE_QUARTERS = 0x20_0000;
  private static final int EXPONENT_OF_4 = 2;

  private final String text;

  ScaleRule(String text) {
    this.text = text;
  }

  /**
   * The rule that options call {@code text}.
   *
   * @throws IllegalArgumentException naming those that there are
   */
  public static ScaleRule of(String text) {
    return Arrays.stream(values()).filter(rule -> rule.text.equals(text)).findFirst().orElseThrow(
        () -> new IllegalArgumentException("Invalid scale rule: " + text + ", must be one of "
            + Arrays.stream(values()).map(ScaleRule::text).collect(Collectors.joining(", "))));
  }

  /** The rule's name in options and metadata. */
  public String text() {
    return text;
  }

  /**
   * The scale byte of a block whose largest magnitude is known; the block itself matters to BEST_OF_TWO alone.
   *
   * @param amax the bits of the largest magnitude, finite
   * @param x holds the block's 32 elements
   * @param from index of the first
   */
  int scale(int amax, float[] x, int from) {
    return switch (this) {
      case CEIL -> exponent(Math.max(amax, SMALLEST) + ABOVE_ONE_AND_A_HALF) - EXPONENT_OF_4;
      case FLOOR -> Math.max(exponent(amax) - EXPONENT_OF_4, 0);
      case EVEN -> Math.max(exponent(amax + FROM_ONE_AND_THREE_QUARTERS) - EXPONENT_OF_4, 0);
      case BEST_OF_TWO -> bestOfTwo(Math.max(exponent(amax) - EXPONENT_OF_4, 1), x, from);
    };
  }

  private static int exponent(int magnitude) {
    return magnitude >>> 23;
  }

  private static int bestOfTwo(int smaller, float[] x, int from) {
    float inverse = Mxfp4Codec.inverse(smaller);
    float[] errors = new float[Mxfp4Codec.BLOCK];
    float[] errorsOfLarger = new float[Mxfp4Codec.BLOCK];
    for (int i = 0; i < Mxfp4Codec.BLOCK; i++) {
      float y = Math.abs(x[from + i] * inverse);
      float error = y - E2M1.decode(E2M1.encode(y));
      float errorOfLarger = y - 2 * E2M1.decode(E2M1.encode(y * 0.5f));
      errors[i] = error * error;
      errorsOfLarger[i] = errorOfLarger * errorOfLarger;
    }

    return LaneSum.of(errorsOfLarger) < LaneSum.of(errors) ? smaller + 1 : smaller;
  }
}
