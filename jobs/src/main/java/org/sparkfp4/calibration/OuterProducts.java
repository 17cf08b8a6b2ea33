package org.sparkfp4.calibration;

import org.sparkfp4.kernels.MatrixView;

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
  private final HessianWorkspace workspace;
  private final MatrixView sums;
  private final MatrixView chunk;
  private int tokens;

  /**
   * @param first first row, and first column
   * @param width number of rows
   * @param cols one past the last column
   */
  OuterProducts(int first, int width, int cols, HessianWorkspace workspace) {
    int all = cols - first;
    this.first = first;
    this.workspace = workspace;
    this.sums = workspace.memory().matrix(width, all);
    this.chunk = workspace.memory().matrix(chunk(width), all);
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
    chunk.setRow(tokens, x, first, chunk.cols());
    tokens++;
    if (tokens == chunk.rows()) {
      flush();
    }
  }

  /** The sums so far, row by row; those left of the diagonal are not all there. */
  double[] sums() {
    flush();
    double[] values = new double[Math.multiplyExact(sums.rows(), sums.cols())];
    sums.values().get(0, values);
    return values;
  }

  private void flush() {
    if (tokens == 0) {
      return;
    }

    for (int row = 0; row < sums.rows(); row += STRIP) {
      int rows = Math.min(STRIP, sums.rows() - row);
      int cols = sums.cols() - row;
      workspace.kernel().add(
          chunk.part(0, row, tokens, rows).transposed(), chunk.part(0, row, tokens, cols),
          sums.part(row, row, rows, cols));
    }

    tokens = 0;
  }
}
