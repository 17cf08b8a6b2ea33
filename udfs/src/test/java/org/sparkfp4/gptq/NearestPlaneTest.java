package org.sparkfp4.gptq;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.CRC32;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.CommonOps_DDRM;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.E2M1;
import org.sparkfp4.kernels.MatrixTest;
import org.sparkfp4.kernels.ProductKernel;
import org.sparkfp4.kernels.ProductKernels;

class NearestPlaneTest extends MatrixTest {
  private static final ProductKernel KERNEL = ProductKernels.forTier("auto");
  private static final double DAMPING = 0.05;
  private static final int ROWS = 12;

  /** More than a panel, exactly some, and less than one. */
  @ParameterizedTest
  @ValueSource(ints = {48, 128, 208, 256})
  void codesAreThoseOfTheMethodWithAnInverse(int cols) {
    Random random = new Random(cols);
    FloatBuffer hessian = inputs(4 * cols, cols, random).hessian(0, 4 * cols);
    WeightTile tile = tile(cols, random);
    WeightTile same = copy(tile);
    plane(hessian, cols, KERNEL).encode(tile, memory);
    encodeByInverse(same, hessian);

    int different = 0;
    for (int row = 0; row < ROWS; row++) {
      for (int col = 0; col < cols; col++) {
        different += tile.code(row, col) == same.code(row, col) ? 0 : 1;
      }
    }

    // a sum in another order may fall to the other side of a midpoint, and what follows with it
    assertThat(different).isLessThanOrEqualTo(ROWS * cols / 500);
    OutputError error = new OutputError(hessian, cols, KERNEL);
    assertThat(error.of(tile, memory)).isCloseTo(error.of(same, memory), within(0.01 * error.of(same, memory)));
  }

  /** The method as it is usually written: the inverse's factor, and weights that move as columns are rounded. */
  private static void encodeByInverse(WeightTile tile, FloatBuffer hessian) {
    int cols = tile.cols();
    DMatrixRMaj inverse = new DMatrixRMaj(cols, cols);
    double trace = 0;
    for (int i = 0; i < cols * cols; i++) {
      inverse.data[i] = hessian.get(i);
      trace += i / cols == i % cols ? hessian.get(i) : 0;
    }

    for (int i = 0; i < cols; i++) {
      inverse.add(i, i, DAMPING * trace / cols);
    }

    CommonOps_DDRM.invert(inverse);
    double[][] upper = new double[cols][cols];
    for (int i = 0; i < cols; i++) {
      for (int j = i; j < cols; j++) {
        double sum = inverse.get(i, j);
        for (int k = 0; k < i; k++) {
          sum -= upper[k][i] * upper[k][j];
        }

        upper[i][j] = i == j ? Math.sqrt(sum) : sum / upper[i][i];
      }
    }

    for (int row = 0; row < tile.rows(); row++) {
      double[] shift = new double[cols];
      for (int j = 0; j < cols; j++) {
        tile.round(row, j, shift[j]);
        double error = (tile.errors().at(j, row) + shift[j]) / upper[j][j];
        for (int later = j + 1; later < cols; later++) {
          shift[later] -= error * upper[j][later];
        }
      }
    }
  }

  @Test
  void correlatedInputsHaveSmallerErrorsThanByRounding() {
    int cols = 256;
    Random random = new Random(3);
    Inputs inputs = inputs(8 * cols, cols, random);
    WeightTile tile = tile(cols, random);
    WeightTile rounded = copy(tile);
    plane(inputs.hessian(0, 6 * cols), cols, KERNEL).encode(tile, memory);
    OutputError error = new OutputError(inputs.hessian(6 * cols, 8 * cols), cols, KERNEL);

    assertThat(error.of(tile, memory)).isLessThan(0.7 * error.of(rounded, memory));
  }

  @Test
  void theErrorIsThatOfTheOutputs() {
    int cols = 48;
    Random random = new Random(4);
    Inputs inputs = inputs(20, cols, random);
    WeightTile tile = tile(cols, random);
    double sum = 0;
    for (int token = 0; token < 20; token++) {
      for (int row = 0; row < ROWS; row++) {
        double output = 0;
        for (int col = 0; col < cols; col++) {
          output += tile.errors().at(col, row) * inputs.value(token, col);
        }

        sum += output * output;
      }
    }

    assertThat(new OutputError(inputs.hessian(0, 20), cols, KERNEL).of(tile, memory)).isCloseTo(sum / 20, within(1e-6 * sum));
  }

  @Test
  void theSameBytesOnEveryMachine() {
    int cols = 208;
    Random random = new Random(5);
    FloatBuffer hessian = inputs(2 * cols, cols, random).hessian(0, 2 * cols);
    WeightTile weights = tile(cols, random);
    for (ProductKernel kernel : ProductKernels.available()) {
      WeightTile tile = weights.withoutCodes(memory);
      plane(hessian, cols, kernel).encode(tile, memory);
      CRC32 codes = new CRC32();
      for (int row = 0; row < ROWS; row++) {
        for (int col = 0; col < cols; col++) {
          codes.update(tile.code(row, col));
        }
      }

      assertThat(codes.getValue()).as(kernel.tier()).isEqualTo(332438433L);
      assertThat(new OutputError(hessian, cols, kernel).of(tile, memory)).as(kernel.tier())
          .isEqualTo(new OutputError(hessian, cols, KERNEL).of(tile, memory));
    }
  }

  @Test
  void columnsThatNoInputTouchedAreRoundedByThemselves() {
    int cols = 48;
    Random random = new Random(6);
    double[] scales = new double[cols];
    Arrays.fill(scales, 1);
    scales[0] = 0;
    scales[21] = 0;
    FloatBuffer hessian = Inputs.rotated(3 * cols, 1, scales, random).hessian(0, 3 * cols);
    WeightTile tile = tile(cols, random);
    WeightTile rounded = copy(tile);
    plane(hessian, cols, KERNEL).encode(tile, memory);

    for (int row = 0; row < ROWS; row++) {
      assertThat(tile.code(row, 0)).isEqualTo(rounded.code(row, 0));
      assertThat(tile.code(row, 21)).isEqualTo(rounded.code(row, 21));
    }
  }

  @Test
  void aHessianThatIsNoneIsDampedMoreOnceAndThenGivenUp() {
    int cols = 16;
    FloatBuffer slightlyOff = diagonal(cols);
    slightlyOff.put(1, 1.2f).put(cols, 1.2f);
    assertThat(HessianFactor.of(slightlyOff, cols, 0.3, KERNEL, memory)).isPresent();
    assertThat(HessianFactor.of(slightlyOff, cols, 0.05, KERNEL, memory)).isPresent();
    assertThat(HessianFactor.of(slightlyOff, cols, 0.01, KERNEL, memory)).isEmpty();
  }

  private NearestPlane plane(FloatBuffer hessian, int cols, ProductKernel kernel) {
    return new NearestPlane(HessianFactor.of(hessian, cols, DAMPING, kernel, memory).orElseThrow(), kernel);
  }

  private static FloatBuffer diagonal(int cols) {
    FloatBuffer hessian = FloatBuffer.allocate(cols * cols);
    for (int i = 0; i < cols; i++) {
      hessian.put(i * cols + i, 1);
    }

    return hessian;
  }

  private static Inputs inputs(int tokens, int cols, Random random) {
    return Inputs.rotated(tokens, 1, Inputs.scales(cols, 0.5, random), random);
  }

  /** Normal weights under scales that make the largest of a block 6, rounded. */
  private WeightTile tile(int cols, Random random) {
    WeightTile tile = new WeightTile(ROWS, cols, memory);
    for (int row = 0; row < ROWS; row++) {
      for (int block = 0; block < cols / 16; block++) {
        float[] w = new float[16];
        float amax = 0;
        for (int i = 0; i < 16; i++) {
          w[i] = (float) random.nextGaussian();
          amax = Math.max(amax, Math.abs(w[i]));
        }

        tile.setFactor(row, block, amax / E2M1.MAX);
        for (int i = 0; i < 16; i++) {
          tile.setWeight(row, 16 * block + i, w[i]);
          tile.round(row, 16 * block + i, 0);
        }
      }
    }

    return tile;
  }

  private WeightTile copy(WeightTile tile) {
    WeightTile copy = tile.withoutCodes(memory);
    for (int row = 0; row < tile.rows(); row++) {
      for (int col = 0; col < tile.cols(); col++) {
        copy.setCode(row, col, tile.code(row, col));
      }
    }

    return copy;
  }
}
