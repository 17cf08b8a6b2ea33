package org.sparkfp4.gptq;

import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.mult.MatrixMatrixMult_DDRM;

/**
 * Chooses codes column by column, under scales that are fixed: of column j the one that makes {@code (e M)_j²} least,
 * given the errors e of the columns before. These are GPTQ's codes without its inverse: what it moves later weights by,
 * column after column, is here found from the errors themselves.
 */
final class NearestPlane {
  private final HessianFactor factor;

  NearestPlane(HessianFactor factor) {
    this.factor = factor;
  }

  /** Sets all codes of a tile. */
  void encode(WeightTile tile) {
    int first = 0;
    for (DMatrixRMaj panel : factor.panels()) {
      encode(tile, panel, first);
      first += panel.numCols;
    }
  }

  private static void encode(WeightTile tile, DMatrixRMaj panel, int first) {
    int rows = tile.rows();
    int width = panel.numCols;
    DMatrixRMaj sums = new DMatrixRMaj(width, rows);
    DMatrixRMaj errors = tile.errors();
    if (first > 0) {
      // what the columns before the panel have to say, for all of it at once
      panel.reshape(first, width, true);
      errors.reshape(first, rows, true);
      MatrixMatrixMult_DDRM.multTransA_reorder(panel, errors, sums);
      panel.reshape(first + width, width, true);
      errors.reshape(tile.cols(), rows, true);
    }

    for (int j = 0; j < width; j++) {
      int col = first + j;
      double diagonal = panel.data[col * width + j];
      for (int row = 0; row < rows; row++) {
        tile.round(row, col, sums.data[j * rows + row] / diagonal);
      }

      for (int later = j + 1; later < width; later++) {
        double entry = panel.data[col * width + later];
        for (int row = 0; row < rows; row++) {
          sums.data[later * rows + row] += entry * errors.data[col * rows + row];
        }
      }
    }
  }
}
