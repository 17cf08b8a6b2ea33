package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Random;
import org.apache.spark.sql.Row;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.formats.E2M1;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.gptq.Inputs;

/**
 * What searches with statistics gain: the mean square of a layer's output errors over held-out inputs, relative to that
 * of the outputs, in thousandths. Weights are normal, [512, 1024]; statistics are of 2048 inputs, and errors of as many
 * others.
 */
class OutputErrorTest {
  private static final int ROWS = 512;
  private static final int COLS = 1024;
  private static final int TOKENS = 2048;

  /** What rounding to one decimal and another draw of the columns' scales may change. */
  private static final double ROUNDING = 0.05;
  private static final double TOLERANCE = 1.01;

  @ParameterizedTest
  @CsvSource({
      // exponent of the spectrum, factor of one column in a hundred; errors: diagonal, hessian, gptq; rows of gptq
      "0,   1,  5.4, 5.4, 5.4, 0",
      "0.7, 1,  5.5, 5.4, 4.9, 512",
      "1,   10, 3.4, 3.2, 1.7, 512",
  })
  void errorsOfHeldOutInputs(
      double exponent, double factor, double diagonal, double local, double gptq, long gptqRows) {
    Random random = new Random(0);
    double[] scales = Inputs.scales(COLS, 0.5, random);
    for (int i = 0; i < COLS / 100; i++) {
      scales[random.nextInt(COLS)] *= factor;
    }

    Inputs inputs = Inputs.rotated(2 * TOKENS, exponent, scales, random);
    FloatBuffer hessian = inputs.hessian(0, TOKENS);
    FloatBuffer heldOut = inputs.hessian(TOKENS, 2 * TOKENS);
    float[] weights = new float[ROWS * COLS];
    for (int i = 0; i < weights.length; i++) {
      weights[i] = (float) random.nextGaussian();
    }

    byte[] data = bytes(FloatBuffer.wrap(weights));
    byte[] both = ByteBuffer.allocate(8 * COLS * COLS).put(bytes(hessian)).put(bytes(heldOut)).array();
    double unit = error(weights, null, heldOut) / 1000;
    Row byBlocks = weighted(data, bytes(local(hessian)));
    Row compensated = new Nvfp4Gptq(Nvfp4Recipe.MODELOPT, 0.05, "auto").call(
        data, null, null, null, null, null, "F32", (long) COLS, null, both);

    assertThat(error(weights, weighted(data, bytes(diagonal(hessian))), heldOut) / unit)
        .isLessThan(TOLERANCE * (diagonal + ROUNDING));
    assertThat(error(weights, byBlocks, heldOut) / unit).isLessThan(TOLERANCE * (local + ROUNDING));
    assertThat(error(weights, compensated, heldOut) / unit).isLessThan(TOLERANCE * (gptq + ROUNDING));
    assertThat(compensated.<long[]>getAs(7)).containsExactly(gptqRows);
    assertThat(compensated.<byte[]>getAs(1)).as("the scales are those of the search").isEqualTo(byBlocks.getAs(1));
    if (gptqRows == 0) {
      assertThat(compensated.<byte[]>getAs(0)).as("what does not win is not taken").isEqualTo(byBlocks.getAs(0));
    }
  }

  private static Row weighted(byte[] data, byte[] importance) {
    return new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.WEIGHTED, "auto").call(
        data, null, null, null, null, null, "F32", (long) COLS, null, importance);
  }

  private static FloatBuffer diagonal(FloatBuffer hessian) {
    FloatBuffer diagonal = FloatBuffer.allocate(COLS);
    for (int i = 0; i < COLS; i++) {
      diagonal.put(i, hessian.get(i * COLS + i));
    }

    return diagonal;
  }

  private static FloatBuffer local(FloatBuffer hessian) {
    FloatBuffer local = FloatBuffer.allocate(16 * COLS);
    for (int i = 0; i < 16 * COLS; i++) {
      local.put(i, hessian.get(i / 16 * COLS + i / 256 * 16 + i % 16));
    }

    return local;
  }

  private static byte[] bytes(FloatBuffer values) {
    ByteBuffer bytes = ByteBuffer.allocate(values.limit() * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(values.duplicate().rewind());
    return bytes.array();
  }

  /** The sum of e H eᵀ over the rows, e being the weights less what they are quantized to. */
  private static double error(float[] weights, Row quantized, FloatBuffer hessian) {
    double[] e = new double[COLS];
    double total = 0;
    for (int row = 0; row < ROWS; row++) {
      for (int col = 0; col < COLS; col++) {
        int at = row * COLS + col;
        e[col] = weights[at] - (quantized == null ? 0 : value(quantized, at));
      }

      for (int i = 0; i < COLS; i++) {
        double product = 0;
        for (int j = 0; j < COLS; j++) {
          product += hessian.get(i * COLS + j) * e[j];
        }

        total += e[i] * product;
      }
    }

    return total;
  }

  private static float value(Row quantized, int at) {
    byte[] packed = quantized.getAs(0);
    byte[] scales = quantized.getAs(1);
    float d = Nvfp4Recipe.MODELOPT.dequantFactor(scales[at / 16], quantized.getFloat(5));
    return E2M1.decode(packed[at / 2] >> at % 2 * 4) * d;
  }
}
