package org.sparkfp4.sink;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;

class ScaleCountsTest {
  @Test
  void everyByteInEveryPlace() {
    for (int scale = 0; scale < 256; scale++) {
      for (int length = 1; length <= 17; length++) {
        for (int place = 0; place < length; place++) {
          byte[] scales = new byte[length];
          Arrays.fill(scales, (byte) 0x38);
          scales[place] = (byte) scale;
          ScaleCounts counts = new ScaleCounts();
          if (scale == 0 || scale >= 0x7F) {
            assertThatThrownBy(() -> counts.add(ByteBuffer.wrap(scales)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageStartingWith("Cannot write block scales: among number ")
                .hasMessageEndingWith("one is zero, NaN or negative");
          } else {
            counts.add(ByteBuffer.wrap(scales));
            assertThat(counts.subnormal()).as("subnormal %02x", scale).isEqualTo(scale < 8 ? 1 : 0);
            assertThat(counts.largest()).as("largest %02x", scale).isEqualTo(scale == 0x7E ? 1 : 0);
          }
        }
      }
    }
  }

  @Test
  void partsOfABufferAddUp() {
    Random random = new Random(7);
    byte[] scales = new byte[1003];
    long subnormal = 0;
    long largest = 0;
    for (int i = 0; i < scales.length; i++) {
      scales[i] = (byte) (1 + random.nextInt(0x7E));
      subnormal += i >= 3 && scales[i] < 8 ? 1 : 0;
      largest += i >= 3 && scales[i] == 0x7E ? 1 : 0;
    }

    ScaleCounts counts = new ScaleCounts();
    ByteBuffer direct = ByteBuffer.allocateDirect(scales.length).put(scales).flip();
    counts.add(direct.slice(3, 500));
    counts.add(direct.position(503));

    assertThat(counts.subnormal()).isEqualTo(subnormal);
    assertThat(counts.largest()).isEqualTo(largest);
    assertThat(direct.position()).as("left alone").isEqualTo(503);
  }
}
