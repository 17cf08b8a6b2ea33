package org.sparkfp4.gptq;

import java.nio.FloatBuffer;
import org.sparkfp4.kernels.MatrixMemory;
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
  double of(WeightTile tile, MatrixMemory memory) {
    MatrixView errors = tile.errors();
    MatrixView panel = memory.matrix(HessianFactor.PANEL, cols);
    MatrixView products = memory.matrix(HessianFactor.PANEL, tile.rows());
    double total = 0;
    for (int first = 0; first < cols; first += HessianFactor.PANEL) {
      int width = Math.min(HessianFactor.PANEL, cols - first);
      MatrixView rows = panel.part(0, 0, width, cols);
      for (int i = 0; i < width; i++) {
        for (int j = 0; j < cols; j++) {
          rows.set(i, j, hessian.get((first + i) * cols + j));
        }
      }

      products.clear();
      kernel.add(rows, errors, products.part(0, 0, width, tile.rows()));
      for (int i = 0; i < width; i++) {
        for (int row = 0; row < tile.rows(); row++) {
          total += products.at(i, row) * errors.at(first + i, row);
        }
      }
    }

    return total;
  }
}
