package org.sparkfp4.formats;

/**
 * The Walsh-Hadamard transform in Sylvester's order, times D^-1/2, which spreads a row's outliers: for h = 1, 2, 4, ...
 * D / 2 the pairs (x[i], x[i + h]) become their sum and difference, one rounding each; at last one product with D^-1/2
 * rounded to binary32.
 */
final class Hadamard {
  private Hadamard() {}

  /** Rotates a row, whose length is a power of two, in place. */
  static void rotate(float[] x) {
    for (int h = 1; h < x.length; h *= 2) {
      for (int i = 0; i < x.length; i++) {
        if ((i & h) == 0) {
          float a = x[i];
          float b = x[i + h];
          x[i] = a + b;
          x[i + h] = a - b;
        }
      }
    }

    float factor = factor(x.length);
    for (int i = 0; i < x.length; i++) {
      x[i] *= factor;
    }
  }

  static float factor(int dim) {
    return (float) (1 / Math.sqrt(dim));
  }
}
