package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class E8M0Test {
  @Test
  void everyByte() {
    for (int s = 0; s < 255; s++) {
      assertThat((double) E8M0.decode(s)).as("byte %d", s).isEqualTo(Math.pow(2, s - 127));
      assertThat(E8M0.decode((byte) s)).as("byte %d, signed", s).isEqualTo(E8M0.decode(s));
    }

    assertThat(E8M0.decode(255)).isNaN();
  }
}
