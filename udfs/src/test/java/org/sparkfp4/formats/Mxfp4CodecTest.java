package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class Mxfp4CodecTest {
  @Test
  void everyBFloat16IsRoundedToTheNearestWithTheSignOfZero() {
    for (int bits = 0; bits < 0x10000; bits++) {
      float x = BFloat16.toFloat((short) bits);
      if (!Float.isNaN(x)) {
        float magnitude = Math.abs(x);
        int index = (magnitude > 0.25f ? 1 : 0) + (magnitude >= 0.75f ? 1 : 0) + (magnitude > 1.25f ? 1 : 0)
            + (magnitude >= 1.75f ? 1 : 0) + (magnitude > 2.5f ? 1 : 0) + (magnitude >= 3.5f ? 1 : 0)
            + (magnitude > 5 ? 1 : 0);
        assertThat(E2M1.encodeWithSignBit(x)).as("%s", x).isEqualTo(bits >> 12 & 8 | index);
      }
    }
  }

  @Test
  void bytesAreAsDocumented() {
    float[] row = new float[64];
    row[0] = 1;
    row[1] = -6;
    row[2] = -0f;
    Arrays.fill(row, 32, 64, 1);
    byte[] packed = new byte[32];
    byte[] scales = new byte[2];
    encode(ScaleRule.CEIL, row, packed, scales);
    assertThat(scales).containsExactly(127, 125);
    assertThat(packed[0]).isEqualTo((byte) 0xF2);
    assertThat(packed[1]).isEqualTo((byte) 0x08);
    assertThat(packed[16]).isEqualTo((byte) 0x66);
  }

  @ParameterizedTest
  @EnumSource
  void whatIsDecodedIsEncodedToItself(ScaleRule rule) {
    Random random = new Random(5);
    float[] row = new float[32 * 100];
    for (int i = 0; i < row.length; i++) {
      row[i] = (float) random.nextGaussian();
    }

    byte[] packed = new byte[row.length / 2];
    byte[] scales = new byte[row.length / 32];
    encode(rule, row, packed, scales);
    float[] decoded = new float[row.length];
    Mxfp4Codec.decode(ByteBuffer.wrap(packed), ByteBuffer.wrap(scales), decoded);
    double squares = 0;
    double errors = 0;
    for (int i = 0; i < row.length; i++) {
      squares += row[i] * row[i];
      errors += (row[i] - decoded[i]) * (row[i] - decoded[i]);
    }

    assertThat(Math.sqrt(errors / squares)).isBetween(0.08, 0.13);
    byte[] again = new byte[packed.length];
    float[] decodedAgain = new float[row.length];
    encode(ScaleRule.CEIL, decoded, again, scales);
    Mxfp4Codec.decode(ByteBuffer.wrap(again), ByteBuffer.wrap(scales), decodedAgain);
    assertThat(decodedAgain).isEqualTo(decoded);
  }

  private static void encode(ScaleRule rule, float[] row, byte[] packed, byte[] scales) {
    ByteBuffer data = ByteBuffer.allocate(row.length * 4).order(ByteOrder.LITTLE_ENDIAN);
    data.asFloatBuffer().put(row);
    Mxfp4Codec.encode(ScaleRule.of(rule.text()), ElementType.F32, data, 1, row.length, ByteBuffer.wrap(packed),
        ByteBuffer.wrap(scales));
  }

  @Test
  void valuesThatAreNotFiniteAreRefused() {
    float[] row = new float[32];
    row[9] = Float.NEGATIVE_INFINITY;
    assertThatThrownBy(() -> encode(ScaleRule.CEIL, row, new byte[16], new byte[1]))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: -Infinity at element 9 of row 0, must be finite");
  }

  @Test
  void sizesThatDoNotGoTogetherAreRefused() {
    assertThatThrownBy(() -> Mxfp4Codec.requireColumns(48)).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid columns: 48, must be a positive multiple of 32");
    assertThatThrownBy(() -> encode(ScaleRule.CEIL, new float[64], new byte[16], new byte[2]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid packed: 16 bytes, must be 32 at least");
    assertThatThrownBy(
        () -> Mxfp4Codec.decode(ByteBuffer.allocate(17), ByteBuffer.allocate(1), new float[32]))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid MXFP4 tensor: 17 bytes of codes and 1 scales for 32 values, must be 16 bytes and a scale "
            + "for every 32");
  }
}
