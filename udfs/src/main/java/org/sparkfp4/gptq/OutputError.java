package org.sparkfp4.gptq;

import java.nio.FloatBuffer;
import org.sparkfp4.kernels.MatrixView;
import org.sparkfp4.kernels.ProductKernel;

/** The mean square of a layer's output errors, {@code tr(E H Eᵀ)}, E being the errors of its weights. */
final class OutputError {
  private final FloatBuffer hessian;
  private final int cols;
  private final ProductKernel kernel;

  /** @param hessian [K, K], symmetric: the mean of x xᵀ over the inputs that it is the error for */
  OutputError(FloatBuffer hessian, int cols, ProductKernel kernel) {
    this.hessian = hessian;
    this.cols = cols;
    this.kernel = kernel;
  }

  /** The error of a tile's rows. */
  double of(WeightTile tile) {
    MatrixView errors = tile.errors();
    double total = 0;
    for (int first = 0; first < cols; first += HessianFactor.PANEL) {
      MatrixView panel = panel(first, Math.min(HessianFactor.PANEL, cols - first));
      double[] products = new double[panel.rows() * tile.rows()];
      kernel.add(panel, errors, MatrixView.of(products, panel.rows(), tile.rows()));
      for (int at = 0; at < products.length; at++) {
        total += products[at] * errors.values()[first * tile.rows() + at];
      }
    }

    return total;
  }

  /** Some rows, which are columns too. */
  private MatrixView panel(int first, int rows) {
    double[] values = new double[rows * cols];
    for (int at = 0; at < values.length; at++) {
      values[at] = hessian.get(first * cols + at);
    }

    return MatrixView.of(values, rows, cols);
  }
}
