package org.sparkfp4.gptq;

import org.sparkfp4.kernels.MatrixMemory;
import org.sparkfp4.kernels.MatrixView;
import org.sparkfp4.kernels.ProductKernel;

/**
 * Chooses codes column by column, under scales that are fixed: of column j the one that makes {@code (e M)_j²} least,
 * given the errors e of the columns before. These are GPTQ's codes without its inverse: what it moves later weights by,
 * column after column, is here found from the errors themselves.
 */
final class NearestPlane {
  /** Columns of a panel whose errors are told one by one to those behind them; to the rest of the panel all at once. */
  private static final int STRIP = 16;

  private final HessianFactor factor;
  private final ProductKernel kernel;

  NearestPlane(HessianFactor factor, ProductKernel kernel) {
    this.factor = factor;
    this.kernel = kernel;
  }

  /** Sets all codes of a tile. */
  void encode(WeightTile tile, MatrixMemory memory) {
    MatrixView sums = memory.matrix(HessianFactor.PANEL, tile.rows());
    int first = 0;
    for (MatrixView panel : factor.panels()) {
      sums.clear();
      encode(tile, panel, first, sums.part(0, 0, panel.rows(), tile.rows()));
      first += panel.rows();
    }
  }

  /** @param sums of what errors say of a column, the factor's entries times them */
  private void encode(WeightTile tile, MatrixView panel, int first, MatrixView sums) {
    add(tile, panel, 0, first, 0, sums);
    for (int begin = 0; begin < panel.rows(); begin += STRIP) {
      int end = Math.min(panel.rows(), begin + STRIP);
      encodeOneByOne(tile, panel, first, begin, end, sums);
      add(tile, panel, first + begin, first + end, end, sums);
    }
  }

  /** Adds what some columns have to say of the panel's from one on. */
  private void add(WeightTile tile, MatrixView panel, int begin, int end, int from, MatrixView sums) {
    int width = panel.rows() - from;
    kernel.add(
        panel.part(from, begin, width, end - begin), tile.errors().part(begin, 0, end - begin, tile.rows()),
        sums.part(from, 0, width, tile.rows()));
  }

  private static void encodeOneByOne(
      WeightTile tile, MatrixView panel, int first, int begin, int end, MatrixView sums) {
    MatrixView errors = tile.errors();
    for (int j = begin; j < end; j++) {
      int col = first + j;
      double diagonal = panel.at(j, col);
      for (int row = 0; row < tile.rows(); row++) {
        tile.round(row, col, sums.at(j, row) / diagonal);
      }

      for (int later = j + 1; later < end; later++) {
        double entry = panel.at(later, col);
        for (int row = 0; row < tile.rows(); row++) {
          sums.set(later, row, sums.at(later, row) + entry * errors.at(col, row));
        }
      }
    }
  }
}
