package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class E2M1Test {
  @Test
  void everyCodeDecodes() {
    float[] values = new float[16];
    for (int code = 0; code < 16; code++) {
      values[code] = E2M1.decode(code);
    }

    assertThat(values).containsExactly(
        0f, 0.5f, 1f, 1.5f, 2f, 3f, 4f, 6f, -0f, -0.5f, -1f, -1.5f, -2f, -3f, -4f, -6f);
    assertThat(E2M1.decode(0xFFFF_FFF7)).isEqualTo(6f);
  }

  @Test
  void everyCodeButMinusZeroSurvives() {
    for (int code = 0; code < 16; code++) {
      assertThat(E2M1.encode(E2M1.decode(code))).isEqualTo(code == 8 ? 0 : code);
    }
  }

  @Test
  void everyBFloat16GoesToTheNearest() {
    int checked = 0;
    for (int bits = 0; bits < 0x10000; bits++) {
      float x = BFloat16.toFloat((short) bits);
      if (!Float.isNaN(x)) {
        int expected = (x < 0 ? 8 : 0) | Grid.E2M1_VALUES.nearest(Math.abs(x));
        assertThat(E2M1.encode(x)).as("%s", x).isEqualTo(expected);
        checked++;
      }
    }

    assertThat(checked).isEqualTo(65536 - 2 * 127);
  }

  @ParameterizedTest
  @CsvSource({"0.25, 0, 0, 1", "0.75, 2, 1, 2", "1.25, 2, 2, 3", "1.75, 4, 3, 4", "2.5, 4, 4, 5", "3.5, 6, 5, 6",
      "5, 6, 6, 7"})
  void tiesGoToTheEvenIndexAndTheirNeighboursDoNot(float midpoint, int at, int below, int above) {
    assertThat(E2M1.encode(midpoint)).isEqualTo(at);
    assertThat(E2M1.encode(Math.nextDown(midpoint))).isEqualTo(below);
    assertThat(E2M1.encode(Math.nextUp(midpoint))).isEqualTo(above);
    assertThat(E2M1.encode(-midpoint)).isEqualTo(8 | at);
    assertThat(E2M1.encode(-Math.nextDown(midpoint))).isEqualTo(8 | below);
    assertThat(E2M1.encode(-Math.nextUp(midpoint))).isEqualTo(8 | above);
  }

  @Test
  void minusZeroIsZeroAndTinyNegativesAreMinusZero() {
    assertThat(E2M1.encode(-0f)).isZero();
    assertThat(E2M1.encode(-Float.MIN_VALUE)).isEqualTo(8);
    assertThat(E2M1.encode(-0.25f)).isEqualTo(8);
    assertThat(E2M1.encode(Float.MIN_VALUE)).isZero();
  }

  @ParameterizedTest
  @ValueSource(floats = {6f, 6.0000005f, 7f, 8f, 448f, Float.MAX_VALUE, Float.POSITIVE_INFINITY})
  void saturates(float x) {
    assertThat(E2M1.encode(x)).isEqualTo(7);
    assertThat(E2M1.encode(-x)).isEqualTo(15);
  }

  @Test
  void nanIsTheLargest() {
    assertThat(E2M1.encode(Float.NaN)).isEqualTo(7);
    assertThat(E2M1.encode(Float.intBitsToFloat(0xFFC0_0001))).isEqualTo(7);
  }
}
