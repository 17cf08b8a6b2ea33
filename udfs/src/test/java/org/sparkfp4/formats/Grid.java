package org.sparkfp4.formats;

/** Rounding as the standards word it, by search: the nearest value of a sorted grid, ties to the even index. */
final class Grid {
  static final Grid E2M1_VALUES = new Grid(0, 0.5, 1, 1.5, 2, 3, 4, 6);
  static final Grid E4M3_VALUES = e4m3();

  private final double[] values;

  private Grid(double... values) {
    this.values = values;
  }

  /** The index nearest to a magnitude; beyond the last value saturates. */
  int nearest(double magnitude) {
    if (magnitude >= values[values.length - 1]) {
      return values.length - 1;
    }

    int best = 0;
    for (int i = 1; i < values.length; i++) {
      double closer = Math.abs(magnitude - values[best]) - Math.abs(magnitude - values[i]);
      if (closer > 0 || closer == 0 && i % 2 == 0) {
        best = i;
      }
    }

    return best;
  }

  double value(int index) {
    return values[index];
  }

  int size() {
    return values.length;
  }

  /** Steps of 2^-9 to 2^-5, then binades of eight values with doubling steps; 480 would be the NaN. */
  private static Grid e4m3() {
    double[] values = new double[127];
    double step = 0x1p-9;
    for (int code = 1; code < values.length; code++) {
      values[code] = values[code - 1] + step;
      if (code % 8 == 0 && code >= 16) {
        step *= 2;
      }
    }

    return new Grid(values);
  }
}
