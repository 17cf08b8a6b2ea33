package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.Random;
import java.util.function.DoubleSupplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;

/** The error of each search on weights of known distributions, 10^-3 of their squares: at most 1 % above the figure. */
class SearchQualityTest {
  private static final int ROWS = 1024;
  private static final int COLS = 2048;

  /** The figures are of other random numbers of the same distributions. */
  @ParameterizedTest
  @CsvSource({"GAUSS, 9.04, 7.54, 6.59", "LAPLACE, 8.60, 7.59, 6.78", "STUDENT_5, 8.50, 7.50, 6.74",
      "UNIFORM, 10.27, 7.62, 6.16", "ROWS, 9.06, 7.56, 6.60", "OUTLIER_COLUMNS, 8.72, 7.91, 7.33"})
  void errors(Distribution distribution, double rtn, double fourOverSix, double sweep) {
    byte[] weights = distribution.weights();
    assertThat(error(weights, ScaleSearch.RTN)).isLessThan(1.01 * rtn).isGreaterThan(0.97 * rtn);
    assertThat(error(weights, ScaleSearch.FOUR_OVER_SIX)).isLessThan(1.01 * fourOverSix);
    assertThat(error(weights, ScaleSearch.SWEEP)).isLessThan(1.01 * sweep);
  }

  private static double error(byte[] weights, ScaleSearch search) {
    NativeMemory source = NativeMemory.of(weights, 0);
    NativeMemory out = NativeMemory.room(weights.length, 0);
    Nvfp4Kernel kernel = Nvfp4Kernels.forTier("auto");
    long[] address = {source.address()};
    float amax = kernel.amax(ElementType.BF16, address, new long[] {(long) ROWS * COLS});
    ErrorSums[] sums = {new ErrorSums()};
    kernel.encode(Nvfp4Recipe.MODELOPT, BlockSearch.of(search), ElementType.BF16, address, new long[] {ROWS}, COLS,
        amax, out.address(), out.address() + weights.length / 2, sums);
    return 1e3 * sums[0].squaredErrors() / sums[0].squares();
  }

  enum Distribution {
    GAUSS, LAPLACE, STUDENT_5, UNIFORM, ROWS, OUTLIER_COLUMNS;

    byte[] weights() {
      Random random = new Random(ordinal());
      DoubleSupplier draw = switch (this) {
        case LAPLACE -> () -> Math.log(1 - random.nextDouble()) * (random.nextBoolean() ? 1 : -1);
        case STUDENT_5 -> () -> student(random);
        case UNIFORM -> () -> 2 * random.nextDouble() - 1;
        default -> random::nextGaussian;
      };
      double[] columns = new double[COLS];
      Arrays.setAll(columns, col -> this == OUTLIER_COLUMNS && random.nextInt(100) == 0 ? 8 : 1);
      int[] bits = new int[SearchQualityTest.ROWS * COLS];
      double deviation = 1;
      for (int i = 0; i < bits.length; i++) {
        deviation = this == ROWS && i % COLS == 0 ? Math.exp(0.5 * random.nextGaussian()) : deviation;
        bits[i] = BFloat16.fromFloat((float) (0.02 * deviation * columns[i % COLS] * draw.getAsDouble()));
      }

      return Unit.bytes(ElementType.BF16, bits);
    }

    private static double student(Random random) {
      double squares = 0;
      for (int i = 0; i < 5; i++) {
        double x = random.nextGaussian();
        squares += x * x;
      }

      return random.nextGaussian() / Math.sqrt(squares / 5);
    }
  }
}
