package org.sparkfp4.gptq;

import java.nio.FloatBuffer;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.mult.MatrixMatrixMult_DDRM;

/** The mean square of a layer's output errors, {@code tr(E H Eᵀ)}, E being the errors of its weights. */
final class OutputError {
  private final FloatBuffer hessian;
  private final int cols;

  /** @param hessian [K, K], symmetric: the mean of x xᵀ over the inputs that it is the error for */
  OutputError(FloatBuffer hessian, int cols) {
    this.hessian = hessian;
    this.cols = cols;
  }

  /** The error of a tile's rows. */
  double of(WeightTile tile) {
    int rows = tile.rows();
    DMatrixRMaj errors = tile.errors();
    double total = 0;
    for (int first = 0; first < cols; first += HessianFactor.PANEL) {
      int width = Math.min(HessianFactor.PANEL, cols - first);
      DMatrixRMaj panel = new DMatrixRMaj(cols, width);
      for (int i = 0; i < cols; i++) {
        for (int j = 0; j < width; j++) {
          panel.data[i * width + j] = hessian.get(i * cols + first + j);
        }
      }

      DMatrixRMaj products = new DMatrixRMaj(width, rows);
      MatrixMatrixMult_DDRM.multTransA_reorder(panel, errors, products);
      for (int at = 0; at < width * rows; at++) {
        total += products.data[at] * errors.data[first * rows + at];
      }
    }

    return total;
  }
}
