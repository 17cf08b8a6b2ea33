package org.sparkfp4.jobs.synthetic;

/**
 * Quantiles of the standard normal distribution at the middles of {@link #COUNT} equal parts: an entry picked uniformly
 * is a Gaussian value. Few enough that a table of them stays in the first-level cache.
 */
final class Quantiles {
  static final int COUNT = 4096;

  private static final double[] NORMAL = new double[COUNT];

  static {
    for (int i = 0; i < COUNT / 2; i++) {
      double quantile = bisect((i + 0.5) / COUNT);
      NORMAL[i] = quantile;
      NORMAL[COUNT - 1 - i] = -quantile;
    }
  }

  private Quantiles() {}

  static double normal(int index) {
    return NORMAL[index];
  }

  /** The quantile that 12 bits of a random word pick. */
  static double normal(long word) {
    return NORMAL[(int) (word >>> 52)];
  }

  private static double bisect(double probability) {
    double low = -6;
    double high = 0;
    while (high - low > 1e-9) {
      double middle = (low + high) / 2;
      if (cumulative(middle) < probability) {
        low = middle;
      } else {
        high = middle;
      }
    }

    return (low + high) / 2;
  }

  /** Distribution function of the standard normal for x in [-6, 0], by the Taylor series of its density's integral. */
  private static double cumulative(double x) {
    double term = x;
    double sum = x;
    for (int n = 1; n < 200 && Math.abs(term) > 1e-18; n++) {
      term *= -x * x / (2 * n);
      sum += term / (2 * n + 1);
    }

    return 0.5 + sum / StrictMath.sqrt(2 * Math.PI);
  }
}
