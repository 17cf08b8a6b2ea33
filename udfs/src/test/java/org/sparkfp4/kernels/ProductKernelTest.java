package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ProductKernelTest extends MatrixTest {
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

      assertThat(all(c)).as("[%d, %d] by [%d, %d]", rows, depth, depth, cols).isEqualTo(expected);
    }
  }

  /** One matrix may hold both factors. */
  @ParameterizedTest
  @MethodSource("kernels")
  void partsOfOneMatrixAreMultiplied(ProductKernel kernel) {
    MatrixView all = random(50, 70, new Random(3));
    MatrixView a = all.part(3, 10, 40, 20).transposed();
    MatrixView b = all.part(3, 5, 40, 60);
    MatrixView c = memory.matrix(20, 60);
    double[] expected = expected(a, b, c);

    kernel.add(a, b, c);

    assertThat(all(c)).isEqualTo(expected);
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void whatDoesNotGoTogetherIsRefused(ProductKernel kernel) {
    MatrixView square = memory.matrix(4, 4);
    MatrixView wide = memory.matrix(2, 6);

    assertThatThrownBy(() -> kernel.add(square, wide, square))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid product: [4, 4] by [2, 6] into [4, 4]");
    assertThatThrownBy(() -> kernel.add(square, square.transposed(), square))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid product: strides 1 and 4 of [4, 4], must be row by row");
    assertThatThrownBy(() -> kernel.add(square, square, new MatrixView(square.values(), 0, 4, 4, 3, 1)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid product: strides 3 and 1 of [4, 4], must be row by row");
  }

  @Test
  void aMatrixLiesInItsMemory() {
    MatrixView matrix = memory.matrix(3, 4);
    assertThat(all(matrix)).containsOnly(0);
    matrix.part(3, 0, 0, 4);
    matrix.transposed().part(0, 3, 4, 0);
    for (int[] place : new int[][] {{0, 4, 4, 4, 1}, {1, 3, 4, 4, 1}, {0, 3, 4, 5, 1}, {-1, 1, 1, 1, 1},
        {0, -1, 1, 1, 1}, {0, 2, 2, -1, 1}, {13, 0, 1, 1, 1}, {0, 1 << 30, 2, 1 << 30, 1}}) {
      assertThatThrownBy(() -> new MatrixView(matrix.values(), place[0], place[1], place[2], place[3], place[4]))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("Invalid matrix: [" + place[1] + ", " + place[2] + "] from " + place[0] + " on");
    }

    for (int[] part : new int[][] {{0, 0, 1, 5}, {0, 0, 4, 1}, {3, 0, 1, 1}, {0, 4, 1, 1}, {-1, 0, 1, 1}}) {
      assertThatThrownBy(() -> matrix.part(part[0], part[1], part[2], part[3]))
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessage("Invalid part: [%d, %d] from %d, %d on, of [3, 4]", part[2], part[3], part[0], part[1]);
    }
  }

  /** A part of a larger matrix, whose other values must stay. */
  private MatrixView random(int rows, int cols, Random random) {
    MatrixView all = memory.matrix(rows + 2, cols + 3);
    for (int i = 0; i < all.rows(); i++) {
      for (int j = 0; j < all.cols(); j++) {
        all.set(i, j, random.nextGaussian());
      }
    }

    return all.part(random.nextInt(3), random.nextInt(4), rows, cols);
  }

  /** All values of the memory that a matrix lies in. */
  private static double[] all(MatrixView matrix) {
    double[] values = new double[matrix.values().capacity()];
    matrix.values().get(0, values);
    return values;
  }

  private static double[] expected(MatrixView a, MatrixView b, MatrixView c) {
    double[] expected = all(c);
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
