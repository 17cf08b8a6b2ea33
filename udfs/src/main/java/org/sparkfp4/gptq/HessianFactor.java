package org.sparkfp4.gptq;

import java.nio.FloatBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.decomposition.chol.CholeskyDecompositionBlock_DDRM;

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

  private static final int CHOLESKY_BLOCK = 64;
  private static final double MORE_DAMPING = 10;

  private final List<DMatrixRMaj> panels;

  private HessianFactor(List<DMatrixRMaj> panels) {
    this.panels = panels;
  }

  /**
   * The factor; with ten times the damping where H is not positive definite with the given one, and nothing where it is
   * not even then.
   *
   * @param hessian [K, K], symmetric and finite
   * @param damping λ in units of the mean of H's diagonal
   */
  static Optional<HessianFactor> of(FloatBuffer hessian, int cols, double damping) {
    Optional<HessianFactor> factor = factor(hessian, cols, damping);
    return factor.isPresent() ? factor : factor(hessian, cols, MORE_DAMPING * damping);
  }

  private static Optional<HessianFactor> factor(FloatBuffer hessian, int cols, double damping) {
    double trace = 0;
    for (int i = 0; i < cols; i++) {
      trace += hessian.get(i * cols + i);
    }

    // with rows and columns reversed, the lower factor of the usual decomposition is the upper one that is wanted
    DMatrixRMaj reversed = new DMatrixRMaj(cols, cols);
    for (int i = 0; i < cols; i++) {
      for (int j = 0; j < cols; j++) {
        reversed.data[(cols - 1 - i) * cols + cols - 1 - j] = hessian.get(i * cols + j);
      }
    }

    double added = damping * trace / cols;
    for (int i = 0; i < cols; i++) {
      int at = i * cols + i;
      reversed.data[at] = reversed.data[at] == 0 ? 1 : reversed.data[at] + added;
    }

    CholeskyDecompositionBlock_DDRM cholesky = new CholeskyDecompositionBlock_DDRM(CHOLESKY_BLOCK);
    return cholesky.decompose(reversed)
        ? Optional.of(new HessianFactor(panels(cholesky.getT(), cols)))
        : Optional.empty();
  }

  /** A panel holds its columns down to their diagonal. */
  private static List<DMatrixRMaj> panels(DMatrixRMaj lower, int cols) {
    List<DMatrixRMaj> panels = new ArrayList<>();
    for (int first = 0; first < cols; first += PANEL) {
      int end = Math.min(cols, first + PANEL);
      DMatrixRMaj panel = new DMatrixRMaj(end, end - first);
      for (int i = 0; i < end; i++) {
        for (int j = Math.max(i, first); j < end; j++) {
          panel.data[i * panel.numCols + j - first] = lower.data[(cols - 1 - i) * cols + cols - 1 - j];
        }
      }

      panels.add(panel);
    }

    return panels;
  }

  /**
   * The panels of {@value #PANEL} columns, each [one past its last column, columns]: rows from the first on, zero below
   * the diagonal.
   */
  List<DMatrixRMaj> panels() {
    return panels;
  }
}
