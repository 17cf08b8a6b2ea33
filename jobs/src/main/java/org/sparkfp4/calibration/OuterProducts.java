package org.sparkfp4.calibration;

import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.mult.MatrixMatrixMult_DDRM;

/**
 * Sums {@code x xᵀ} over tokens: some of its rows, each from the first of these columns on. Tokens are gathered in
 * chunks, for products of matrices read a sum once a chunk and not once a token.
 */
final class OuterProducts {
  static final int CHUNK = 32;

  private final int first;
  private final DMatrixRMaj sums;
  private final DMatrixRMaj rows;
  private final DMatrixRMaj cols;
  private int tokens;

  /**
   * @param first first row, and first column
   * @param width number of rows
   * @param cols one past the last column
   */
  OuterProducts(int first, int width, int cols) {
    this.first = first;
    this.sums = new DMatrixRMaj(width, cols - first);
    this.rows = new DMatrixRMaj(CHUNK, width);
    this.cols = new DMatrixRMaj(CHUNK, cols - first);
  }

  void add(double[] x) {
    System.arraycopy(x, first, rows.data, tokens * rows.numCols, rows.numCols);
    System.arraycopy(x, first, cols.data, tokens * cols.numCols, cols.numCols);
    tokens++;
    if (tokens == CHUNK) {
      flush();
    }
  }

  /** The sums so far, row by row. */
  double[] sums() {
    flush();
    return sums.data;
  }

  private void flush() {
    if (tokens > 0) {
      rows.reshape(tokens, rows.numCols, true);
      cols.reshape(tokens, cols.numCols, true);
      MatrixMatrixMult_DDRM.multAddTransA_reorder(rows, cols, sums);
      rows.reshape(CHUNK, rows.numCols, true);
      cols.reshape(CHUNK, cols.numCols, true);
      tokens = 0;
    }
  }
}
