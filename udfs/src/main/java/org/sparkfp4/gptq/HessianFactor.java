package org.sparkfp4.gptq;

import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import org.sparkfp4.kernels.MatrixMemory;
import org.sparkfp4.kernels.MatrixView;
import org.sparkfp4.kernels.ProductKernel;

/**
 * The upper triangular M with {@code M Mᵀ = H + λI}, H being the mean of x xᵀ over a layer's inputs.
 *
 * <p>It turns the error of a row's outputs into one of columns that are added up: of a row of errors e, {@code e H eᵀ =
 * Σ_j (e M)_j²}, and {@code (e M)_j} depends on the first j errors alone.
 *
 * <p>λ is a share of the mean of H's diagonal. A column that no input touched has a diagonal of 0 and gets 1: it
 * depends on no other then.
 */
final class HessianFactor {
  /** Columns of a panel. */
  static final int PANEL = 128;

  /** Columns of a panel that are found one by one, before what they say of the others is taken off at once. */
  private static final int STRIP = 16;

  private static final double MORE_DAMPING = 10;

  private final List<MatrixView> panels;

  private HessianFactor(List<MatrixView> panels) {
    this.panels = panels;
  }

  /**
   * The factor; with ten times the damping where H is not positive definite with the given one, and nothing where it is
   * not even then.
   *
   * @param hessian [K, K], symmetric and finite
   * @param damping λ in units of the mean of H's diagonal
   * @param memory of the factor, which is good until it is closed
   */
  static Optional<HessianFactor> of(
      FloatBuffer hessian, int cols, double damping, ProductKernel kernel, MatrixMemory memory) {
    Optional<HessianFactor> factor = factor(hessian, cols, damping, kernel, memory);
    if (factor.isPresent()) {
      return factor;
    }

    memory.close();
    return factor(hessian, cols, MORE_DAMPING * damping, kernel, memory);
  }

  /**
   * The panels of {@value #PANEL} columns, transposed: [columns, one past the last column], a column of M a row, zero
   * beyond its diagonal.
   */
  List<MatrixView> panels() {
    return panels;
  }

  /** Cholesky's decomposition from the last panel on: it depends on those behind it alone. */
  private static Optional<HessianFactor> factor(
      FloatBuffer hessian, int cols, double damping, ProductKernel kernel, MatrixMemory memory) {
    double trace = 0;
    for (int i = 0; i < cols; i++) {
      trace += hessian.get(i * cols + i);
    }

    double added = damping * trace / cols;
    List<MatrixView> fromTheLast = new ArrayList<>();
    for (int first = (cols - 1) / PANEL * PANEL; first >= 0; first -= PANEL) {
      int end = Math.min(cols, first + PANEL);
      MatrixView panel = memory.matrix(end - first, end);
      try (MatrixMemory scratch = new MatrixMemory(memory.allocator())) {
        fill(panel, hessian, cols, first, added);
        MatrixView known = scratch.matrix(end - first, end);
        for (MatrixView later : fromTheLast) {
          kernel.add(
              later.part(0, first, later.rows(), end - first).transposed(), later.part(0, 0, later.rows(), end), known);
        }

        subtract(known, panel);
        if (!factor(panel, first, known, kernel)) {
          return Optional.empty();
        }
      }

      fromTheLast.add(panel);
    }

    Collections.reverse(fromTheLast);
    return Optional.of(new HessianFactor(fromTheLast));
  }

  /** Rows of H + λI, up to their diagonals. */
  private static void fill(MatrixView panel, FloatBuffer hessian, int cols, int first, double added) {
    for (int row = 0; row < panel.rows(); row++) {
      int i = first + row;
      for (int j = 0; j < i; j++) {
        panel.set(row, j, hessian.get(i * cols + j));
      }

      double diagonal = hessian.get(i * cols + i);
      panel.set(row, i, diagonal == 0 ? 1 : diagonal + added);
    }
  }

  /**
   * Makes columns of M of the rows of H less what later panels say of them.
   *
   * @param scratch of the panel's size
   * @return whether H is positive definite as far as these columns tell
   */
  private static boolean factor(MatrixView panel, int first, MatrixView scratch, ProductKernel kernel) {
    for (int begin = (panel.rows() - 1) / STRIP * STRIP; begin >= 0; begin -= STRIP) {
      int end = Math.min(panel.rows(), begin + STRIP);
      MatrixView strip = panel.part(begin, 0, end - begin, first + end);
      MatrixView later = panel.part(end, 0, panel.rows() - end, first + end);
      MatrixView known = scratch.part(0, 0, strip.rows(), strip.cols());
      known.clear();
      kernel.add(later.part(0, first + begin, later.rows(), end - begin).transposed(), later, known);
      subtract(known, strip);
      if (!factorOneByOne(strip, first + begin)) {
        return false;
      }
    }

    return true;
  }

  private static boolean factorOneByOne(MatrixView strip, int first) {
    // on arrays, which the compiler makes vectors of
    double[][] columns = new double[strip.rows()][strip.cols()];
    for (int column = 0; column < strip.rows(); column++) {
      strip.getRow(column, columns[column], first + column + 1);
    }

    for (int column = strip.rows() - 1; column >= 0; column--) {
      int diagonal = first + column;
      double square = columns[column][diagonal];
      if (!(square > 0)) {
        return false;
      }

      double root = Math.sqrt(square);
      for (int i = 0; i <= diagonal; i++) {
        columns[column][i] /= root;
      }

      for (int other = 0; other < column; other++) {
        subtract(columns[column], columns[column][first + other], columns[other], first + other + 1);
      }

      strip.setRow(column, columns[column], 0, diagonal + 1);
    }

    return true;
  }

  private static void subtract(double[] column, double entry, double[] from, int count) {
    for (int i = 0; i < count; i++) {
      from[i] -= entry * column[i];
    }
  }

  /** Takes sums off, of which those beyond a row's diagonal say nothing. */
  private static void subtract(MatrixView sums, MatrixView from) {
    int beyond = from.cols() - from.rows();
    for (int row = 0; row < from.rows(); row++) {
      for (int i = 0; i <= beyond + row; i++) {
        from.set(row, i, from.at(row, i) - sums.at(row, i));
      }
    }
  }
}
