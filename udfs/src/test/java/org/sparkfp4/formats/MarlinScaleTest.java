package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.BitSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class MarlinScaleTest {
  @ParameterizedTest
  @ValueSource(floats = {1, 2, 16, 512, 0x1p17f})
  void everyScaleUpToTheLimitComesBack(float factor) {
    MarlinScale scale = new MarlinScale(factor);
    for (int code = 0; code <= scale.limit(); code++) {
      int stored = scale.encode(code);
      // A byte of 5 bits of exponent and 3 of mantissa, biased as binary16 is.
      double value = stored < 8 ? stored * 0x1p-17 : (8 + stored % 8) * Math.scalb(1.0, stored / 8 - 18);
      assertThat(value).isEqualTo(E4M3.decode(code) * 128.0 * factor);
      assertThat(scale.decode(stored)).isEqualTo(code);
    }

    BitSet taken = new BitSet();
    for (int code = 0; code < 256; code++) {
      if (code <= scale.limit()) {
        taken.set(scale.encode(code));
      } else {
        assertThat(scale.encode(code)).isEqualTo(0xFF);
      }
    }

    for (int stored = 0; stored < 256; stored++) {
      assertThat(scale.decode(stored) == 0x7F).isEqualTo(!taken.get(stored));
    }

    assertThat(E4M3.decode(scale.limit()) * factor).isLessThanOrEqualTo(448);
    assertThat(scale.limit() == 0x7E || E4M3.decode(scale.limit() + 1) * factor > 448).isTrue();
  }

  @Test
  void theFactorFollowsTheLargestScale() {
    assertThat(MarlinScale.forLargest(0).factor()).isEqualTo(1);
    assertThat(MarlinScale.forLargest(1).factor()).isEqualTo(0x1p17f);
    for (int code = 1; code <= 0x7E; code++) {
      float expected = (float) Math.pow(2, Math.floor(Math.log(448.0 / E4M3.decode(code)) / Math.log(2) + 1e-9));
      MarlinScale scale = MarlinScale.forLargest(code);
      assertThat(scale.factor()).isEqualTo(expected);
      assertThat(scale.limit()).isGreaterThanOrEqualTo(code);
    }
  }

  @ParameterizedTest
  @ValueSource(floats = {0.5f, 0, -1, 3, 0x1p18f, Float.NaN, Float.POSITIVE_INFINITY})
  void otherFactorsAreRefused(float factor) {
    assertThatThrownBy(() -> new MarlinScale(factor)).hasMessageStartingWith("Invalid factor: " + factor);
  }
}
