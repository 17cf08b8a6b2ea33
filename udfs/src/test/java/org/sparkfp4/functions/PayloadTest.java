package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class PayloadTest {
  @Test
  void valuesOfTwoGibibytesAreRefused() {
    assertThat(Nvfp4Dequantize.payloadBytes((1 << 28) - 8, (1 << 25) - 1)).isEqualTo(Integer.MAX_VALUE - 63);
    String message = "Invalid packed: the values of 268435456 bytes of codes are of 8 times as many, must be below 2 GiB";
    assertThatThrownBy(() -> Nvfp4Dequantize.payloadBytes(1 << 28, 1 << 25))
        .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith(message);
    assertThatThrownBy(() -> Payload.valueBytes(1 << 28))
        .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith(message);
  }
}
