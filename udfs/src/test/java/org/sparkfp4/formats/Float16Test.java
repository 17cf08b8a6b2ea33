package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class Float16Test {
  @Test
  void everyValueWidensExactlyAndComesBack() {
    for (int bits = 0; bits < 0x10000; bits++) {
      float x = Float16.toFloat((short) bits);
      if ((bits & 0x7FFF) > 0x7C00) {
        assertThat(x).isNaN();
        assertThat(Float.floatToRawIntBits(x)).isEqualTo((bits & 0x8000) << 16 | 0x7F80_0000 | (bits & 0x3FF) << 13);
        assertThat(Float16.fromFloat(x)).isEqualTo((short) (bits | 0x200));
      } else {
        assertThat(Float.compare(x, value(bits))).as("%04x", bits).isZero();
        assertThat(Float16.fromFloat(x)).isEqualTo((short) bits);
      }
    }
  }

  @Test
  void everyMidpointGoesToEvenAndItsNeighboursDoNot() {
    for (int bits = 0; bits < 0x7C00; bits++) {
      // The infinity's code, for rounding, is the value that would follow 65504.
      float next = bits + 1 == 0x7C00 ? 65536f : value(bits + 1);
      float midpoint = (value(bits) + next) / 2;
      int even = bits + bits % 2;
      assertThat(Float16.fromFloat(midpoint)).isEqualTo((short) even);
      assertThat(Float16.fromFloat(Math.nextDown(midpoint))).isEqualTo((short) bits);
      assertThat(Float16.fromFloat(Math.nextUp(midpoint))).isEqualTo((short) (bits + 1));
      assertThat(Float16.fromFloat(-midpoint)).isEqualTo((short) (0x8000 | even));
    }
  }

  @Test
  void overflowsToInfinity() {
    assertThat(Float16.fromFloat(65519.996f)).isEqualTo((short) 0x7BFF);
    assertThat(Float16.fromFloat(65520f)).isEqualTo((short) 0x7C00);
    assertThat(Float16.fromFloat(-1e30f)).isEqualTo((short) 0xFC00);
    assertThat(Float16.fromFloat(Float.POSITIVE_INFINITY)).isEqualTo((short) 0x7C00);
  }

  @Test
  void vanishesAtHalfTheSmallestSubnormal() {
    assertThat(Float16.fromFloat(0x1p-25f)).isZero();
    assertThat(Float16.fromFloat(-0x1p-25f)).isEqualTo((short) 0x8000);
    assertThat(Float16.fromFloat(Math.nextUp(0x1p-25f))).isEqualTo((short) 1);
    assertThat(Float16.fromFloat(Float.MIN_VALUE)).isZero();
  }

  /** sign * 2^(e - 15) * (1 + m / 1024), or sign * 2^-14 * m / 1024 where e is 0; 31 is infinity. */
  private static float value(int bits) {
    int e = bits >>> 10 & 31;
    double m = (bits & 1023) / 1024.0;
    double magnitude = e == 0 ? m * 0x1p-14 : e == 31 ? Double.POSITIVE_INFINITY : Math.pow(2, e - 15) * (1 + m);
    return (float) ((bits & 0x8000) == 0 ? magnitude : -magnitude);
  }
}
