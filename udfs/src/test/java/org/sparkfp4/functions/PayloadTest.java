package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class PayloadTest {
  @Test
  void valuesOfTwoGibibytesAreRefused() {
    assertThat(Nvfp4Dequantize.payloadBytes((1 << 28) - 8, (1 << 25) - 1, 1)).isEqualTo(Integer.MAX_VALUE - 63);
    assertThat(Mxfp4Dequantize.payloadBytes((1 << 28) - 16, (1 << 24) - 1)).isEqualTo(Integer.MAX_VALUE - 127);
    String message = "Invalid packed: the values of 268435456 bytes of codes are of 8 times as many, must be below 2 GiB";
    assertThatThrownBy(() -> Nvfp4Dequantize.payloadBytes(1 << 28, 1 << 25, 1))
        .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith(message);
    assertThatThrownBy(() -> Mxfp4Dequantize.payloadBytes(1 << 28, 1 << 24))
        .isInstanceOf(IllegalArgumentException.class).hasMessageStartingWith(message);
  }

  @Test
  void scalesMustBelongToTheCodes() {
    assertThatThrownBy(() -> Nvfp4Dequantize.payloadBytes(24, 2, 1)).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid scales: 2 bytes for 24 bytes of codes, must be one for every 8");
    assertThatThrownBy(() -> Mxfp4Dequantize.payloadBytes(17, 1)).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid scales: 1 bytes for 17 bytes of codes, must be one for every 16");
    assertThatThrownBy(() -> Nvfp4Dequantize.payloadBytes(8, 1, Float.POSITIVE_INFINITY))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid global scale: Infinity, must be positive and finite");
  }
}
