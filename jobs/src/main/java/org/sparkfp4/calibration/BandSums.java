package org.sparkfp4.calibration;

import org.sparkfp4.formats.Nvfp4;

/**
 * Sums over the tokens of one input, of a band of its columns. Counts are exact; the sums are of doubles, whose order
 * depends on how the tokens were parted: two partings agree to a few units in the last place of a double, relative to
 * {@code sqrt(Σ x_i² Σ x_j²)}.
 */
final class BandSums implements Partial {
  private static final long serialVersionUID = 1L;

  /** Of so many tokens one is held out: those whose number leaves this less one as the remainder. */
  static final int HELD_OUT = 8;

  private final int first;
  private final int width;
  private final int cols;
  private final long[] histogram = new long[BlockAmaxHistogram.BINS];
  private final double[] squares;
  private final double[] local;
  private long tokens;
  private long heldOutTokens;
  private float amax;
  private double[] full;
  private double[] heldOut;
  private transient OuterProducts fullProducts;
  private transient OuterProducts heldOutProducts;

  /**
   * @param first first column
   * @param width columns, a multiple of 16
   * @param cols K
   * @param workspace of a full Hessian's sums; null for the other kinds
   */
  BandSums(int first, int width, int cols, HessianKind hessian, HessianWorkspace workspace) {
    this.first = first;
    this.width = width;
    this.cols = cols;
    this.squares = new double[width];
    this.local = hessian == HessianKind.NONE ? null : new double[width * Nvfp4.BLOCK];
    if (hessian == HessianKind.FULL) {
      fullProducts = new OuterProducts(first, width, cols, workspace);
      heldOutProducts = new OuterProducts(first, width, cols, workspace);
    }
  }

  /**
   * Adds a token.
   *
   * @param token its number, which decides whether it is held out
   * @param x its K activations, finite
   */
  void add(long token, double[] x) {
    boolean heldOutToken = token % HELD_OUT == HELD_OUT - 1;
    tokens++;
    heldOutTokens += heldOutToken ? 1 : 0;
    for (int block = 0; block < width; block += Nvfp4.BLOCK) {
      double largest = 0;
      for (int i = block; i < block + Nvfp4.BLOCK; i++) {
        double value = x[first + i];
        squares[i] += value * value;
        largest = Math.max(largest, Math.abs(value));
      }

      amax = Math.max(amax, (float) largest);
      histogram[BlockAmaxHistogram.bin((float) largest)]++;
    }

    if (local != null) {
      addLocal(x);
    }

    if (fullProducts != null) {
      (heldOutToken ? heldOutProducts : fullProducts).add(x);
    }
  }

  private void addLocal(double[] x) {
    for (int i = 0; i < width; i++) {
      double value = x[first + i];
      int block = first + i / Nvfp4.BLOCK * Nvfp4.BLOCK;
      int row = i * Nvfp4.BLOCK;
      for (int j = 0; j < Nvfp4.BLOCK; j++) {
        local[row + j] += value * x[block + j];
      }
    }
  }

  /** Ends the additions of tokens; what is left can be sent and added to others. */
  BandSums finish() {
    if (fullProducts != null) {
      full = fullProducts.sums();
      heldOut = heldOutProducts.sums();
      fullProducts = null;
      heldOutProducts = null;
    }

    return this;
  }

  /** Adds the sums of other tokens. */
  void add(BandSums other) {
    tokens += other.tokens;
    heldOutTokens += other.heldOutTokens;
    amax = Math.max(amax, other.amax);
    for (int bin = 0; bin < histogram.length; bin++) {
      histogram[bin] += other.histogram[bin];
    }

    add(squares, other.squares);
    if (local != null) {
      add(local, other.local);
    }

    if (full != null) {
      add(full, other.full);
      add(heldOut, other.heldOut);
    }
  }

  private static void add(double[] sums, double[] others) {
    for (int i = 0; i < sums.length; i++) {
      sums[i] += others[i];
    }
  }

  int first() {
    return first;
  }

  int width() {
    return width;
  }

  int cols() {
    return cols;
  }

  long tokens() {
    return tokens;
  }

  long heldOutTokens() {
    return heldOutTokens;
  }

  float amax() {
    return amax;
  }

  long[] histogram() {
    return histogram;
  }

  /** Σx² of each column of the band. */
  double[] squares() {
    return squares;
  }

  /** Σx xᵀ of each block of 16 columns, {@code [width/16, 16, 16]}; null where it is not asked for. */
  double[] local() {
    return local;
  }

  /**
   * Σx xᵀ of the tokens that are not held out, {@code [width, cols - first]}, of which those from the diagonal on count;
   * null where it is not asked for.
   */
  double[] full() {
    return full;
  }

  /** Σx xᵀ of the tokens that are held out, likewise. */
  double[] heldOut() {
    return heldOut;
  }
}
