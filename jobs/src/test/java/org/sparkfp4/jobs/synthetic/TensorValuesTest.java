package org.sparkfp4.jobs.synthetic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.safetensors.DType;

class TensorValuesTest {
  @Test
  void weightsAreGaussianWithOutliers() {
    float[] values = values(DType.F32, SyntheticTensor.Kind.WEIGHT, 3 * TensorValues.CHUNK + 5);

    double sigma = deviation(values);
    assertThat(mean(values)).isCloseTo(0, within(0.01 * sigma));
    assertThat(share(values, sigma)).isCloseTo(0.6827, within(0.01));
    assertThat(share(values, 2 * sigma)).isCloseTo(0.9545, within(0.005));
    assertThat(1 - share(values, 4 * sigma)).isBetween(1e-6, 1e-4);
  }

  @Test
  void normsAreAroundOne() {
    float[] values = values(DType.F32, SyntheticTensor.Kind.NORM, 10_000);

    assertThat(mean(values)).isCloseTo(1, within(0.005));
    assertThat(deviation(values)).isCloseTo(0.05, within(0.005));
  }

  @Test
  void halfTypesAreTheSameValuesRounded() {
    float[] full = values(DType.F32, SyntheticTensor.Kind.WEIGHT, TensorValues.CHUNK + 7);

    assertThat(values(DType.BF16, SyntheticTensor.Kind.WEIGHT, full.length))
        .isEqualTo(map(full, x -> BFloat16.toFloat(BFloat16.fromFloat(x))));
    assertThat(values(DType.F16, SyntheticTensor.Kind.WEIGHT, full.length))
        .isEqualTo(map(full, x -> Float16.toFloat(Float16.fromFloat(x))));
  }

  private static float[] values(DType dtype, SyntheticTensor.Kind kind, int elements) {
    TensorValues values =
        new TensorValues(new SyntheticTensor("a.experts.3.w1", dtype, List.of((long) elements), kind), 5);
    byte[] buffer = TensorValues.buffer();
    float[] all = new float[elements];
    int filled = 0;
    for (long chunk = 0; chunk < values.chunks(); chunk++) {
      ByteBuffer bytes = ByteBuffer.wrap(buffer, 0, values.fill(chunk, buffer)).order(ByteOrder.LITTLE_ENDIAN);
      while (bytes.hasRemaining()) {
        all[filled++] = switch (dtype) {
          case BF16 -> BFloat16.toFloat(bytes.getShort());
          case F16 -> Float16.toFloat(bytes.getShort());
          default -> bytes.getFloat();
        };
      }
    }

    assertThat(filled).isEqualTo(elements);
    return all;
  }

  private interface Rounding {
    float apply(float x);
  }

  private static float[] map(float[] values, Rounding rounding) {
    float[] mapped = Arrays.copyOf(values, values.length);
    for (int i = 0; i < mapped.length; i++) {
      mapped[i] = rounding.apply(mapped[i]);
    }

    return mapped;
  }

  private static double mean(float[] values) {
    double sum = 0;
    for (float value : values) {
      sum += value;
    }

    return sum / values.length;
  }

  private static double deviation(float[] values) {
    double mean = mean(values);
    double sum = 0;
    for (float value : values) {
      sum += (value - mean) * (value - mean);
    }

    return Math.sqrt(sum / values.length);
  }

  private static double share(float[] values, double limit) {
    int within = 0;
    for (float value : values) {
      within += Math.abs(value) < limit ? 1 : 0;
    }

    return within / (double) values.length;
  }
}
