package org.sparkfp4.sink;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.E2M1;
import org.sparkfp4.formats.E4M3;

/** Counts against the formats' reference, at every length about a word and every offset in it. */
class CodeCountsTest {
  @Test
  void countsOfEveryByte() {
    for (int value = 0; value < 256; value++) {
      byte[] one = {(byte) value};
      assertThat(CodeCounts.saturated(ByteBuffer.wrap(one))).as("codes %02x", value).isEqualTo(saturated(one, 0, 1));
      assertThat(CodeCounts.subnormal(ByteBuffer.wrap(one))).as("scale %02x", value).isEqualTo(subnormal(one, 0, 1));
    }
  }

  @Test
  void countsOfRandomBytes() {
    byte[] bytes = new byte[4096];
    new Random(3).nextBytes(bytes);
    for (int from = 0; from < 9; from++) {
      for (int length = 0; length < 40; length++) {
        check(bytes, from, length);
      }

      check(bytes, from, bytes.length - 2 * from);
    }
  }

  private static void check(byte[] bytes, int from, int length) {
    ByteBuffer buffer = ByteBuffer.wrap(bytes, from, length);

    assertThat(CodeCounts.saturated(buffer)).isEqualTo(saturated(bytes, from, length));
    assertThat(CodeCounts.subnormal(buffer)).isEqualTo(subnormal(bytes, from, length));
    assertThat(buffer.remaining()).isEqualTo(length);
  }

  private static long saturated(byte[] bytes, int from, int length) {
    long count = 0;
    for (int i = from; i < from + length; i++) {
      count += Math.abs(E2M1.decode(bytes[i] & 15)) == 6 ? 1 : 0;
      count += Math.abs(E2M1.decode(bytes[i] >> 4 & 15)) == 6 ? 1 : 0;
    }

    return count;
  }

  private static long subnormal(byte[] bytes, int from, int length) {
    long count = 0;
    for (int i = from; i < from + length; i++) {
      float magnitude = Math.abs(E4M3.decode(bytes[i] & 0xFF));
      count += magnitude > 0 && magnitude < 0x1p-6f ? 1 : 0;
    }

    return count;
  }
}
