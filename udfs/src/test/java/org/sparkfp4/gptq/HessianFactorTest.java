package org.sparkfp4.gptq;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.FloatBuffer;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.kernels.MatrixTest;
import org.sparkfp4.kernels.MatrixView;
import org.sparkfp4.kernels.ProductKernel;
import org.sparkfp4.kernels.ProductKernels;

class HessianFactorTest extends MatrixTest {
  private static final double DAMPING = 0.01;

  /** Less than a strip and a panel, exactly some, and more. */
  @ParameterizedTest
  @ValueSource(ints = {1, 16, 47, 128, 129, 272, 400})
  void timesItsTransposeIsTheDampedHessian(int cols) {
    Random random = new Random(cols);
    FloatBuffer hessian = Inputs.rotated(3 * cols, 1, Inputs.scales(cols, 1, random), random).hessian(0, 3 * cols);
    double trace = 0;
    for (int i = 0; i < cols; i++) {
      trace += hessian.get(i * cols + i);
    }

    double[][] factor = dense(
        HessianFactor.of(hessian, cols, DAMPING, ProductKernels.forTier("auto"), memory).orElseThrow(), cols);
    for (int i = 0; i < cols; i++) {
      for (int j = 0; j <= i; j++) {
        double sum = 0;
        for (int k = 0; k < cols; k++) {
          sum += factor[i][k] * factor[j][k];
        }

        double expected = hessian.get(i * cols + j) + (i == j ? DAMPING * trace / cols : 0);
        double size = Math.sqrt((double) hessian.get(i * cols + i) * hessian.get(j * cols + j)) + DAMPING;
        assertThat(Math.abs(sum - expected)).as("[%d, %d]", i, j).isLessThan(1e-12 * size);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {47, 272})
  void everyKernelGivesTheSameBits(int cols) {
    Random random = new Random(cols);
    FloatBuffer hessian = Inputs.rotated(3 * cols, 1, Inputs.scales(cols, 1, random), random).hessian(0, 3 * cols);
    List<MatrixView> expected =
        HessianFactor.of(hessian, cols, DAMPING, ProductKernels.forTier("java"), memory).orElseThrow().panels();
    for (ProductKernel kernel : ProductKernels.available()) {
      List<MatrixView> panels = HessianFactor.of(hessian, cols, DAMPING, kernel, memory).orElseThrow().panels();
      for (int i = 0; i < panels.size(); i++) {
        assertThat(panels.get(i).values()).as(kernel.tier()).isEqualTo(expected.get(i).values());
      }
    }
  }

  private static double[][] dense(HessianFactor factor, int cols) {
    double[][] dense = new double[cols][cols];
    int first = 0;
    for (MatrixView panel : factor.panels()) {
      for (int column = 0; column < panel.rows(); column++) {
        for (int i = 0; i < panel.cols(); i++) {
          dense[i][first + column] = panel.at(column, i);
          assertThat(i <= first + column || panel.at(column, i) == 0).as("beyond the diagonal").isTrue();
        }
      }

      first += panel.rows();
    }

    return dense;
  }
}
