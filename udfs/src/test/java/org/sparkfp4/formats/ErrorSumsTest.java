package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ErrorSumsTest {
  private static final int ROWS = 61;
  private static final int COLS = 16 * 7;

  @ParameterizedTest
  @EnumSource
  void followTheTreeAndTheLanes(Nvfp4Recipe recipe) {
    float[] w = wideWeights();
    Encoded encoded = Encoded.of(recipe, ElementType.F32, Encoded.f32(w), ROWS, COLS);
    float[] decoded = encoded.decode(recipe, ROWS, COLS);

    double[] squares = new double[16];
    double[] errors = new double[16];
    for (int block = 0; block < w.length / 16; block++) {
      float[] square = new float[16];
      float[] error = new float[16];
      for (int i = 0; i < 16; i++) {
        float x = w[16 * block + i];
        float e = x - decoded[16 * block + i];
        square[i] = x * x;
        error[i] = e * e;
      }

      squares[block % 16] += tree(square, 0, 1);
      errors[block % 16] += tree(error, 0, 1);
    }

    assertThat(encoded.sums().squares()).isEqualTo(tree(squares, 0, 1));
    assertThat(encoded.sums().squaredErrors()).isEqualTo(tree(errors, 0, 1));
  }

  @Test
  void theOrderCounts() {
    // a float that starts at the large square and adds the others one by one never sees them
    float[] w = new float[16];
    Arrays.fill(w, 1f);
    w[0] = 4096;

    ErrorSums sums = Encoded.of(Nvfp4Recipe.MODELOPT, ElementType.F32, Encoded.f32(w), 1, 16).sums();

    // (4096^2 + 1 rounds to 4096^2), + 2 and + 4 and + 8 are seen
    assertThat(sums.squares()).isEqualTo(4096.0 * 4096.0 + 14);
  }

  @Test
  void goOnOverSeveralCalls() {
    float[] w = wideWeights();
    ByteBuffer data = Encoded.f32(w);
    float amax = Nvfp4.amax(ElementType.F32, data);
    ErrorSums whole = Encoded.of(Nvfp4Recipe.MODELOPT, ElementType.F32, data, ROWS, COLS, amax).sums();
    ErrorSums pieces = new ErrorSums();
    for (int row = 0; row < ROWS; row++) {
      Nvfp4.encode(Nvfp4Recipe.MODELOPT, ElementType.F32, data.slice(4 * row * COLS, 4 * COLS), 1, COLS, amax / 2688f,
          ByteBuffer.allocate(COLS / 2), ByteBuffer.allocate(COLS / 16), pieces);
    }

    assertThat(pieces.squares()).isEqualTo(whole.squares());
    assertThat(pieces.squaredErrors()).isEqualTo(whole.squaredErrors());
  }

  @Test
  void startAtZeroAndTakeTotals() {
    ErrorSums sums = new ErrorSums();
    assertThat(sums.squares()).isZero();
    assertThat(sums.squaredErrors()).isZero();

    for (int block = 0; block < 3; block++) {
      sums.addBlock(new float[] {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0, 1);
    }

    assertThat(sums.squares()).isEqualTo(48);
    assertThat(sums.squaredErrors()).isEqualTo(48);

    sums.set(0.1, 1e-300);

    assertThat(sums.squares()).isEqualTo(0.1);
    assertThat(sums.squaredErrors()).isEqualTo(1e-300);
  }

  /** Magnitudes so different, within blocks and between them, that another order of the additions gives other bits. */
  private static float[] wideWeights() {
    Random random = new Random(5);
    float[] w = new float[ROWS * COLS];
    for (int i = 0; i < w.length; i++) {
      w[i] = Math.scalb((float) (random.nextGaussian() * Math.exp(2 * random.nextGaussian())), 7 * (i / 16) % 25 - 12);
    }

    return w;
  }

  /** Pairs (i, i + 8), then (i, i + 4) and so on: at the root of the tree stand the even and the odd indices. */
  private static float tree(float[] terms, int first, int step) {
    return step == 16 ? terms[first] : tree(terms, first, 2 * step) + tree(terms, first + step, 2 * step);
  }

  private static double tree(double[] terms, int first, int step) {
    return step == 16 ? terms[first] : tree(terms, first, 2 * step) + tree(terms, first + step, 2 * step);
  }
}
