package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;

class TensorSummaryTest {
  @Test
  void figuresOfFewValues() {
    TensorSummary summary = TensorSummary.of(ElementType.F32, floats(-3, 1, 0, -0f, 2));

    assertThat(summary.elements()).isEqualTo(5);
    assertThat(summary.zeros()).isEqualTo(2);
    assertThat(summary.min()).isEqualTo(-3);
    assertThat(summary.max()).isEqualTo(2);
    assertThat(summary.amax()).isEqualTo(3);
    assertThat(summary.mean()).isZero();
    assertThat(summary.deviation()).isEqualTo(Math.sqrt(14 / 5.0));
    assertThat(summary.kurtosis()).isCloseTo(98 / 5.0 / (2.8 * 2.8), within(1e-15));
  }

  @Test
  void whatIsNotFiniteIsCountedAndLeftOut() {
    TensorSummary summary = TensorSummary.of(ElementType.F32,
        floats(Float.NaN, 4, Float.NEGATIVE_INFINITY, 6, Float.POSITIVE_INFINITY, Float.intBitsToFloat(0xffc00001)));

    assertThat(summary).isEqualTo(new TensorSummary(6, 0, 2, 2, 4, 6, 6, 5, 1, 1));
  }

  @Test
  void noValuesHaveNoFigures() {
    for (ByteBuffer none : new ByteBuffer[] {floats(), floats(Float.NaN, Float.POSITIVE_INFINITY)}) {
      TensorSummary summary = TensorSummary.of(ElementType.F32, none);
      assertThat(new double[] {summary.min(), summary.max(), summary.amax(), summary.mean(), summary.deviation(),
          summary.kurtosis()}).containsOnly(Double.NaN);
      assertThat(summary.zeros()).isZero();
    }
  }

  @Test
  void valuesThatAreAllTheSameHaveNoKurtosis() {
    TensorSummary summary = TensorSummary.of(ElementType.F32, floats(1.5f, 1.5f, 1.5f));
    assertThat(summary.deviation()).isZero();
    assertThat(summary.kurtosis()).isNaN();
  }

  @Test
  void normalValuesOfEveryTypeHaveAKurtosisOfThree() {
    Random random = new Random(5);
    // more than a chunk, and no multiple of one
    float[] values = new float[50_001];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) random.nextGaussian() * 0.02f;
    }

    for (ElementType type : ElementType.values()) {
      ByteBuffer data = ByteBuffer.allocate(values.length * type.bytes()).order(ByteOrder.LITTLE_ENDIAN);
      for (int i = 0; i < values.length; i++) {
        type.store(values[i], data, i * type.bytes());
      }

      TensorSummary summary = TensorSummary.of(type, data);
      assertThat(summary.elements()).isEqualTo(values.length);
      assertThat(summary.amax()).isEqualTo(Nvfp4.amax(type, data));
      assertThat(summary.deviation()).isCloseTo(0.02, within(2e-4));
      assertThat(summary.kurtosis()).isCloseTo(3, within(0.1));
    }
  }

  @Test
  void aPartOfAnElementIsRefused() {
    assertThatThrownBy(() -> TensorSummary.of(ElementType.BF16, ByteBuffer.allocate(5)))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid data: 5 bytes are no whole number of BF16 elements");
  }

  private static ByteBuffer floats(float... values) {
    ByteBuffer data = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    data.asFloatBuffer().put(values);
    return data;
  }
}
