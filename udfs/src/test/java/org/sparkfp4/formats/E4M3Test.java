package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class E4M3Test {
  @Test
  void everyCodeDecodesAndSurvives() {
    for (int code = 0; code < 256; code++) {
      float value = E4M3.decode(code);
      if ((code & 0x7F) == 0x7F) {
        assertThat(value).isNaN();
        assertThat(E4M3.encode(value)).isEqualTo(0x7F);
      } else {
        assertThat(Math.abs(value)).isEqualTo((float) Grid.E4M3_VALUES.value(code & 0x7F));
        assertThat(Math.copySign(1f, value)).isEqualTo(code < 0x80 ? 1f : -1f);
        assertThat(E4M3.encode(value)).isEqualTo(code);
      }
    }

    assertThat(E4M3.decode((byte) 0xFE)).isEqualTo(-448f);
  }

  @ParameterizedTest
  @CsvSource({"0, 0x00", "0x1p-9, 0x01", "0x1p-6, 0x08", "0.125, 0x20", "1, 0x38", "448, 0x7E", "0x1p-10, 0x00",
      "0x1.8p-10, 0x01"})
  void anchors(float x, String code) {
    assertThat(E4M3.encode(x)).isEqualTo(Integer.decode(code));
  }

  @Test
  void everyMidpointGoesToTheEvenCodeAndItsNeighboursDoNot() {
    for (int code = 0; code < 0x7E; code++) {
      float midpoint = (E4M3.decode(code) + E4M3.decode(code + 1)) / 2;
      int even = code + code % 2;
      assertThat(E4M3.encode(midpoint)).as("%s", midpoint).isEqualTo(even);
      assertThat(E4M3.encode(Math.nextDown(midpoint))).as("below %s", midpoint).isEqualTo(code);
      assertThat(E4M3.encode(Math.nextUp(midpoint))).as("above %s", midpoint).isEqualTo(code + 1);
      assertThat(E4M3.encode(-midpoint)).as("-%s", midpoint).isEqualTo(0x80 | even);
    }
  }

  @Test
  void everyBFloat16GoesToTheNearest() {
    for (int bits = 0; bits < 0x10000; bits++) {
      float x = BFloat16.toFloat((short) bits);
      if (!Float.isNaN(x)) {
        int expected = (bits >>> 8 & 0x80) | Grid.E4M3_VALUES.nearest(Math.abs(x));
        assertThat(E4M3.encode(x)).as("%s", x).isEqualTo(expected);
      }
    }
  }

  @ParameterizedTest
  @ValueSource(floats = {448f, 464f, 464.00003f, 480f, 1e9f, Float.MAX_VALUE, Float.POSITIVE_INFINITY})
  void clamps(float x) {
    assertThat(E4M3.encode(x)).isEqualTo(0x7E);
    assertThat(E4M3.encode(-x)).isEqualTo(0xFE);
  }

  @Test
  void subnormalFloatsAreZero() {
    assertThat(E4M3.encode(Float.MIN_VALUE)).isZero();
    assertThat(E4M3.encode(-Float.MIN_NORMAL)).isEqualTo(0x80);
  }
}
