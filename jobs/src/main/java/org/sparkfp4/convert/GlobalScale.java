package org.sparkfp4.convert;

import java.io.Serializable;
import java.util.HexFormat;
import java.util.regex.Pattern;

/**
 * A global scale as the layout stored it that the numbers come from. The reciprocal of a reciprocal is not the same
 * float, so its bits travel with the weights until a layout stores it in that form again.
 *
 * @param reciprocal whether weights are divided by it (compressed-tensors), else multiplied (ModelOpt)
 * @param bits the float's
 */
record GlobalScale(boolean reciprocal, int bits) implements Serializable {
  /** What the keys of metadata begin with that hold a scale; the name of the tensor that it was follows. */
  static final String KEY = "sparkfp4.bits.";

  /** Characters of {@link #text}. */
  static final int TEXT_LENGTH = 9;

  private static final Pattern TEXT = Pattern.compile("[mr][0-9a-f]{8}");
  private static final char RECIPROCAL = 'r';
  private static final char MULTIPLIER = 'm';

  static GlobalScale of(boolean reciprocal, float value) {
    return new GlobalScale(reciprocal, Float.floatToRawIntBits(value));
  }

  float value() {
    return Float.intBitsToFloat(bits);
  }

  /** What weights are multiplied by. */
  float multiplier() {
    return reciprocal ? 1 / value() : value();
  }

  /** The scale in a layout's form: the stored bits, or those of their reciprocal. */
  float as(boolean asReciprocal) {
    return reciprocal == asReciprocal ? value() : 1 / value();
  }

  /** Whether both forms are positive and finite. */
  boolean isUsable() {
    return value() > 0 && value() <= Float.MAX_VALUE && 1 / value() <= Float.MAX_VALUE;
  }

  /** A letter for the form, and the bits in hexadecimal. */
  String text() {
    return (reciprocal ? RECIPROCAL : MULTIPLIER) + HexFormat.of().toHexDigits(bits);
  }

  /**
   * Reads {@link #text}.
   *
   * @throws IllegalArgumentException if it is none
   */
  static GlobalScale parse(String text) {
    if (!TEXT.matcher(text).matches()) {
      throw new IllegalArgumentException("Invalid global scale: " + text + ", must be m or r and 8 hexadecimal digits");
    }

    return new GlobalScale(text.charAt(0) == RECIPROCAL, HexFormat.fromHexDigits(text, 1, TEXT_LENGTH));
  }
}
