package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class BFloat16Test {
  @Test
  void everyValueWidensToItsBitsAndComesBack() {
    for (int bits = 0; bits < 0x10000; bits++) {
      float x = BFloat16.toFloat((short) bits);
      boolean nan = (bits & 0x7FFF) > 0x7F80;
      assertThat(Float.isNaN(x)).isEqualTo(nan);
      assertThat(Float.floatToRawIntBits(x)).isEqualTo(bits << 16);
      assertThat(BFloat16.fromFloat(x)).isEqualTo((short) (nan ? bits | 0x40 : bits));
    }
  }

  @Test
  void everyMidpointGoesToEvenAndItsNeighboursDoNot() {
    for (int bits = 0; bits < 0x7F80; bits++) {
      int midpoint = bits << 16 | 0x8000;
      for (int sign : new int[] {0, 0x8000}) {
        assertThat(round(sign << 16 | midpoint)).isEqualTo(sign | bits + bits % 2);
        assertThat(round(sign << 16 | midpoint - 1)).isEqualTo(sign | bits);
        assertThat(round(sign << 16 | midpoint + 1)).isEqualTo(sign | bits + 1);
      }
    }
  }

  @Test
  void overflowsToInfinityAndKeepsNanQuiet() {
    assertThat(round(0x7F7F_FFFF)).isEqualTo(0x7F80);
    assertThat(round(0xFF80_0000)).isEqualTo(0xFF80);
    assertThat(round(0x7F80_0001)).isEqualTo(0x7FC0);
    assertThat(round(0xFFFF_FFFF)).isEqualTo(0xFFFF);
  }

  private static int round(int floatBits) {
    return BFloat16.fromFloat(Float.intBitsToFloat(floatBits)) & 0xFFFF;
  }
}
