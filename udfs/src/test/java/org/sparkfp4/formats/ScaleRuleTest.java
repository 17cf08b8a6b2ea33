package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class ScaleRuleTest {
  @Test
  void everyBFloat16AmaxHasTheScaleOfTheDefinition() {
    for (int bits = 0; bits < 0x7F80; bits++) {
      check(BFloat16.toFloat((short) bits));
    }
  }

  @Test
  void floatsBesideEveryBoundaryHaveTheScaleOfTheDefinition() {
    for (int exponent = -149; exponent < 128; exponent++) {
      for (double m : new double[] {1, 1.5, 1.75}) {
        float boundary = (float) Math.scalb(m, exponent);
        if (boundary > 0 && Float.isFinite(boundary)) {
          check(boundary);
          check(Math.nextDown(boundary));
          if (Float.isFinite(Math.nextUp(boundary))) {
            check(Math.nextUp(boundary));
          }
        }
      }
    }
  }

  private static void check(float amax) {
    assertThat(scale(ScaleRule.CEIL, amax)).as("ceil of %s", amax).isEqualTo(ceil(amax));
    assertThat(scale(ScaleRule.FLOOR, amax)).as("floor of %s", amax).isEqualTo(floor(amax));
    assertThat(scale(ScaleRule.EVEN, amax)).as("even of %s", amax).isEqualTo(floor(roundedToOneBit(amax)));
    assertThat(scale(ScaleRule.BEST_OF_TWO, amax)).as("best of two of %s", amax)
        .isBetween(Math.max(floor(amax), 1), Math.max(floor(amax), 1) + 1);
  }

  /** The smallest u whose 6 * 2^(u - 127) reaches the amax, in doubles, which hold all of this exactly. */
  private static int ceil(double amax) {
    int u = 1;
    while (Math.scalb(6.0, u - 127) < amax) {
      u++;
    }

    return u;
  }

  private static int floor(double amax) {
    return amax == 0 ? 0 : Math.max(Math.getExponent(amax) - 2 + 127, 0);
  }

  private static double roundedToOneBit(double amax) {
    double unit = Math.scalb(0.5, amax == 0 ? 0 : Math.getExponent(amax));
    return Math.floor(amax / unit + 0.5) * unit;
  }

  private static int scale(ScaleRule rule, float amax) {
    float[] block = new float[32];
    block[17] = -amax;
    return rule.scale(Float.floatToRawIntBits(amax), block, 0);
  }

  @ParameterizedTest
  @CsvSource({"0, 1, 0, 0, 1", "1, 125, 125, 125, 125", "6, 127, 127, 127, 127", "6.0000005, 128, 127, 127, 127",
      "7, 128, 127, 128, 127"})
  void knownScales(float amax, int ceil, int floor, int even, int best) {
    assertThat(scale(ScaleRule.CEIL, amax)).isEqualTo(ceil);
    assertThat(scale(ScaleRule.FLOOR, amax)).isEqualTo(floor);
    assertThat(scale(ScaleRule.EVEN, amax)).isEqualTo(even);
    assertThat(scale(ScaleRule.BEST_OF_TWO, amax)).isEqualTo(best);
  }

  @Test
  void theBestOfTwoHasTheSmallerError() {
    Random random = new Random(1);
    int larger = 0;
    for (int i = 0; i < 2000; i++) {
      float[] block = new float[32];
      float amax = 0;
      for (int j = 0; j < block.length; j++) {
        block[j] = (float) random.nextGaussian();
        amax = Math.max(amax, Math.abs(block[j]));
      }

      int low = floor(amax);
      int chosen = ScaleRule.BEST_OF_TWO.scale(Float.floatToRawIntBits(amax), block, 0);
      double chosenError = error(block, chosen);
      assertThat(chosenError).isLessThanOrEqualTo(Math.min(error(block, low), error(block, low + 1)) * (1 + 1e-6));
      larger += chosen - low;
    }

    assertThat(larger).isBetween(200, 1800);
  }

  private static double error(float[] block, int scale) {
    double sum = 0;
    for (float x : block) {
      double unit = E8M0.decode(scale);
      double difference = x - E2M1.decode(E2M1.encode((float) (x / unit))) * unit;
      sum += difference * difference;
    }

    return sum;
  }

  @ParameterizedTest
  @EnumSource
  void rulesAreNamed(ScaleRule rule) {
    assertThat(ScaleRule.of(rule.text())).isEqualTo(rule);
    assertThatThrownBy(() -> ScaleRule.of("round")).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid scale rule: round, must be one of ceil, floor, even, best-of-two");
  }
}
