package org.sparkfp4.calibration;

import org.sparkfp4.kernels.MatrixView;
import org.sparkfp4.kernels.ProductKernel;

/**
 * Sums {@code x xᵀ} over tokens: some of its rows, each from the first of these columns on, right of its diagonal. Tokens
 * are gathered in chunks, for products of matrices read a sum once a chunk and not once a token.
 */
final class OuterProducts {
  private static final int LEAST_CHUNK = 32;
  private static final int MOST_CHUNK = 128;

  /** Rows that are summed up from the first one's diagonal on. */
  private static final int STRIP = 64;

  private final int first;
  private final ProductKernel kernel;
  private final MatrixView sums;
  private final MatrixView chunk;
  private int tokens;

  /**
   * @param first first row, and first column
   * @param width number of rows
   * @param cols one past the last column
   */
  OuterProducts(int first, int width, int cols, ProductKernel kernel) {
    int all = cols - first;
    this.first = first;
    this.kernel = kernel;
    this.sums = MatrixView.of(new double[Math.multiplyExact(width, all)], width, all);
    this.chunk = MatrixView.of(new double[chunk(width) * all], chunk(width), all);
  }

  /**
   * Tokens of a chunk: many, for sums that no cache holds are read and written once a chunk; but a small share of the
   * memory that the sums themselves take, unless these are few.
   *
   * @param width number of rows
   */
  static int chunk(int width) {
    return Math.max(LEAST_CHUNK, Math.min(MOST_CHUNK, width / 4));
  }

  void add(double[] x) {
    System.arraycopy(x, first, chunk.values(), tokens * chunk.cols(), chunk.cols());
    tokens++;
    if (tokens == chunk.rows()) {
      flush();
    }
  }

  /** The sums so far, row by row; those left of the diagonal are not all there. */
  double[] sums() {
    flush();
    return sums.values();
  }

  private void flush() {
    for (int row = 0; row < sums.rows(); row += STRIP) {
      int rows = Math.min(STRIP, sums.rows() - row);
      int cols = sums.cols() - row;
      kernel.add(
          chunk.part(0, row, tokens, rows).transposed(), chunk.part(0, row, tokens, cols),
          sums.part(row, row, rows, cols));
    }

    tokens = 0;
  }
}
