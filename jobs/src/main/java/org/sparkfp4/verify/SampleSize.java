package org.sparkfp4.verify;

/**
 * How many layers are quantized again.
 *
 * @param count so many; -1 where {@code share} says it, -2 for none at all
 * @param share of all layers, 0 to 1
 */
public record SampleSize(long count, double share) {
  /** Every layer. */
  public static final SampleSize ALL = new SampleSize(-1, 1);

  /** No layer: there is no way to them that could be gone again. */
  static final SampleSize NONE = new SampleSize(-2, 0);

  /**
   * Reads a number of layers, such as 20, or a share of them, such as 5%.
   *
   * @throws IllegalArgumentException if it is neither
   */
  public static SampleSize parse(String text) {
    try {
      if (text.endsWith("%")) {
        double percent = Double.parseDouble(text.substring(0, text.length() - 1));
        if (percent >= 0 && percent <= 100) {
          return new SampleSize(-1, percent / 100);
        }
      } else {
        long count = Long.parseLong(text);
        if (count >= 0) {
          return new SampleSize(count, 0);
        }
      }
    } catch (NumberFormatException e) {
      // said below
    }

    throw new IllegalArgumentException(
        "Invalid --sample: " + text + ", must be a number of layers, such as 20, or a share of them, such as 5%");
  }

  /** So many of {@code layers}: at least one, if there is any and not none was asked for. */
  int of(int layers) {
    if (equals(NONE)) {
      return 0;
    }

    double wanted = count >= 0 ? count : Math.ceil(share * layers);
    return (int) Math.min(layers, Math.max(1, wanted));
  }
}
