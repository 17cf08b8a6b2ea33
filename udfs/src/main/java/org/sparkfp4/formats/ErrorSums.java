package org.sparkfp4.formats;

import java.util.Arrays;

/**
 * The sum of w^2 and of (w - dequantized w)^2 over one segment: consecutive rows of one tensor, encoded by one call or
 * by several in order.
 *
 * <p>The order of the additions is part of the definition, so that every kernel gives the same bits. Within a block of
 * 16 elements all is binary32, one rounding an operation: the squares are summed by a fixed tree, element i with i + 8,
 * then i + 4, i + 2 and i + 1. The sums of the blocks are added, in double, to 16 lanes: lane = (row-major index of the
 * block in the segment) mod 16. At the end the same tree sums the lanes.
 *
 * <p>Not thread-safe: one instance a segment.
 */
public final class ErrorSums {
  private static final int LANES = 16;

  private final double[] squares = new double[LANES];
  private final double[] squaredErrors = new double[LANES];
  private final double[] laneScratch = new double[LANES];
  private final float[] squareScratch = new float[Nvfp4.BLOCK];
  private final float[] errorScratch = new float[Nvfp4.BLOCK];
  private long blocks;

  /** The sum of w^2. */
  public double squares() {
    return sum(squares);
  }

  /** The sum of (w - e2m1(code) * d)^2. */
  public double squaredErrors() {
    return sum(squaredErrors);
  }

  /** Replaces what was summed so far by the totals of a kernel that kept the lanes itself. */
  public void set(double totalSquares, double totalSquaredErrors) {
    Arrays.fill(squares, 0);
    Arrays.fill(squaredErrors, 0);
    squares[0] = totalSquares;
    squaredErrors[0] = totalSquaredErrors;
    blocks = 0;
  }

  /**
   * Adds the segment's next block.
   *
   * @param w its 16 weights
   * @param codes its E2M1 codes, the first in the lowest 4 bits
   * @param d the factor that dequantizes them
   */
  void addBlock(float[] w, long codes, float d) {
    for (int i = 0; i < Nvfp4.BLOCK; i++) {
      errorScratch[i] = w[i] - E2M1.decode((int) (codes >>> 4 * i)) * d;
    }

    for (int i = 0; i < Nvfp4.BLOCK; i++) {
      squareScratch[i] = w[i] * w[i];
      errorScratch[i] = errorScratch[i] * errorScratch[i];
    }

    int lane = (int) (blocks % LANES);
    squares[lane] += sum(squareScratch);
    squaredErrors[lane] += sum(errorScratch);
    blocks++;
  }

  /** The tree, from its root: i and i + 1 are added last, i and i + 8 first. */
  static float sum(float[] terms) {
    return sumEverySecond(terms, 0) + sumEverySecond(terms, 1);
  }

  private static float sumEverySecond(float[] terms, int i) {
    return sumEveryFourth(terms, i) + sumEveryFourth(terms, i + 2);
  }

  private static float sumEveryFourth(float[] terms, int i) {
    return (terms[i] + terms[i + 8]) + (terms[i + 4] + terms[i + 12]);
  }

  /** The same tree in double; the lanes stay as they are. */
  private double sum(double[] lanes) {
    System.arraycopy(lanes, 0, laneScratch, 0, LANES);
    for (int half = LANES / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; i++) {
        laneScratch[i] += laneScratch[i + half];
      }
    }

    return laneScratch[0];
  }
}
