package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ProductKernelTest {
  static List<ProductKernel> kernels() {
    return ProductKernels.available();
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void everyKernelGivesTheBitsOfTheDefinition(ProductKernel kernel) {
    Random random = new Random(1);
    for (int round = 0; round < 500; round++) {
      int rows = random.nextInt(40);
      int depth = random.nextInt(round % 10 == 0 ? 300 : 20);
      int cols = random.nextInt(80);
      boolean transposed = random.nextBoolean();
      MatrixView left = random(transposed ? depth : rows, transposed ? rows : depth, random);
      MatrixView a = transposed ? left.transposed() : left;
      MatrixView b = random(depth, cols, random);
      MatrixView c = random(rows, cols, random);
      double[] expected = expected(a, b, c);

      kernel.add(a, b, c);

      assertThat(c.values()).as("[%d, %d] by [%d, %d]", rows, depth, depth, cols).isEqualTo(expected);
    }
  }

  /** More multiplications than one call of a library makes. */
  @ParameterizedTest
  @MethodSource("kernels")
  void aLargeProductIsMadeInSeveralCalls(ProductKernel kernel) {
    Random random = new Random(2);
    MatrixView a = random(71, 3000, random);
    MatrixView b = random(3000, 600, random);
    MatrixView c = random(71, 600, random);
    double[] expected = expected(a, b, c);

    kernel.add(a, b, c);

    assertThat(c.values()).isEqualTo(expected);
  }

  /** One array may hold both factors. */
  @ParameterizedTest
  @MethodSource("kernels")
  void partsOfOneMatrixAreMultiplied(ProductKernel kernel) {
    MatrixView all = random(50, 70, new Random(3));
    MatrixView a = all.part(3, 10, 40, 20).transposed();
    MatrixView b = all.part(3, 5, 40, 60);
    MatrixView c = MatrixView.of(new double[20 * 60], 20, 60);
    double[] expected = expected(a, b, c);

    kernel.add(a, b, c);

    assertThat(c.values()).isEqualTo(expected);
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void whatDoesNotGoTogetherIsRefused(ProductKernel kernel) {
    MatrixView square = MatrixView.of(new double[16], 4, 4);
    MatrixView wide = MatrixView.of(new double[12], 2, 6);

    assertThatThrownBy(() -> kernel.add(square, wide, square))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid product: [4, 4] by [2, 6] into [4, 4]");
    assertThatThrownBy(() -> kernel.add(square, square.transposed(), square))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid product: strides 1 and 4 of [4, 4], must be row by row");
    assertThatThrownBy(() -> kernel.add(square, square, new MatrixView(new double[16], 0, 4, 4, 3, 1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid product: strides 3 and 1 of [4, 4], must be row by row");
  }

  @Test
  void aMatrixLiesInItsArray() {
    double[] values = new double[12];
    MatrixView.of(values, 3, 4).part(3, 0, 0, 4);
    for (int[] place : new int[][] {{0, 4, 4, 4, 1}, {1, 3, 4, 4, 1}, {0, 3, 4, 5, 1}, {-1, 1, 1, 1, 1},
        {0, -1, 1, 1, 1}, {0, 2, 2, -1, 1}, {13, 0, 1, 1, 1}, {0, 1 << 30, 2, 1 << 30, 1}}) {
      assertThatThrownBy(() -> new MatrixView(values, place[0], place[1], place[2], place[3], place[4]))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("Invalid matrix: [" + place[1] + ", " + place[2] + "] from " + place[0] + " on");
    }
  }

  /** A part of a larger matrix, whose other values must stay. */
  private static MatrixView random(int rows, int cols, Random random) {
    int stride = cols + random.nextInt(3);
    int offset = random.nextInt(3);
    double[] values = new double[offset + rows * stride];
    for (int i = 0; i < values.length; i++) {
      values[i] = random.nextGaussian();
    }

    return new MatrixView(values, offset, rows, cols, stride, 1);
  }

  private static double[] expected(MatrixView a, MatrixView b, MatrixView c) {
    double[] expected = c.values().clone();
    for (int i = 0; i < c.rows(); i++) {
      for (int j = 0; j < c.cols(); j++) {
        double sum = c.at(i, j);
        for (int k = 0; k < b.rows(); k++) {
          sum += a.at(i, k) * b.at(k, j);
        }

        expected[c.offset() + i * c.rowStride() + j] = sum;
      }
    }

    return expected;
  }
}
