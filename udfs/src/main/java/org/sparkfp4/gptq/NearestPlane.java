package org.sparkfp4.gptq;

import org.sparkfp4.kernels.MatrixView;
import org.sparkfp4.kernels.ProductKernel;

/**
 * Chooses codes column by column, under scales that are fixed: of column j the one that makes {@code (e M)_j²} least,
 * given the errors e of the columns before. These are GPTQ's codes without its inverse: what it moves later weights by,
 * column after column, is here found from the errors themselves.
 */
final class NearestPlane {
  private final HessianFactor factor;
  private final ProductKernel kernel;

  NearestPlane(HessianFactor factor, ProductKernel kernel) {
    this.factor = factor;
    this.kernel = kernel;
  }

  /** Sets all codes of a tile. */
  void encode(WeightTile tile) {
    int first = 0;
    for (MatrixView panel : factor.panels()) {
      encode(tile, panel, first);
      first += panel.rows();
    }
  }

  private void encode(WeightTile tile, MatrixView panel, int first) {
    int rows = tile.rows();
    int width = panel.rows();
    MatrixView errors = tile.errors();
    double[] sums = new double[width * rows];
    // what the columns before the panel have to say, for all of it at once
    kernel.add(
        panel.part(0, 0, width, first), errors.part(0, 0, first, rows), MatrixView.of(sums, width, rows));
    for (int j = 0; j < width; j++) {
      int col = first + j;
      double diagonal = panel.at(j, col);
      for (int row = 0; row < rows; row++) {
        tile.round(row, col, sums[j * rows + row] / diagonal);
      }

      for (int later = j + 1; later < width; later++) {
        double entry = panel.at(later, col);
        for (int row = 0; row < rows; row++) {
          sums[later * rows + row] += entry * errors.values()[col * rows + row];
        }
      }
    }
  }
}
