package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.formats.E2M1;
import org.sparkfp4.formats.E8M0;
import org.sparkfp4.formats.Nvfp4Recipe;

/** All codes under all scale bytes: a value is one product, and NaN is one. */
class DequantizedNanTest {
  private static final int NAN = 0x7FC0_0000;
  private static final float LARGE = 3e38f;

  @ParameterizedTest
  @EnumSource(Nvfp4Recipe.class)
  void nvfp4(Nvfp4Recipe recipe) {
    byte[] packed = eachScalesCodes(8);
    for (float globalScale : new float[] {LARGE, 0.37f, 1e-38f}) {
      ByteBuffer payload = little(new Nvfp4Dequantize(recipe).call(packed, everyByte(), globalScale));
      for (int i = 0; i < 2 * packed.length; i++) {
        float value = element(packed, i) * recipe.dequantFactor(i / 16, globalScale);
        assertThat(payload.getInt(4 * i)).isEqualTo(bits(value));
      }
    }
  }

  /** Zero times an infinite factor is NaN, too, and on some processors a negative one. */
  @Test
  void nanOfAnOverflowIsTheOne() {
    byte[] scales = {0x7E};
    ByteBuffer payload = little(new Nvfp4Dequantize(Nvfp4Recipe.MODELOPT).call(new byte[8], scales, LARGE));
    for (int i = 0; i < 16; i++) {
      assertThat(payload.getInt(4 * i)).isEqualTo(NAN);
    }
  }

  @Test
  void mxfp4() {
    byte[] packed = eachScalesCodes(16);
    ByteBuffer payload = little(new Mxfp4Dequantize().call(packed, everyByte()));
    for (int i = 0; i < 2 * packed.length; i++) {
      assertThat(payload.getInt(4 * i)).isEqualTo(bits(element(packed, i) * E8M0.decode(i / 32)));
    }
  }

  private static byte[] everyByte() {
    byte[] bytes = new byte[256];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) i;
    }

    return bytes;
  }

  /** Codes of 256 blocks, each of which has all sixteen. */
  private static byte[] eachScalesCodes(int blockBytes) {
    byte[] packed = new byte[256 * blockBytes];
    for (int i = 0; i < packed.length; i++) {
      int code = i * 2 % 16;
      packed[i] = (byte) (code | code + 1 << 4);
    }

    return packed;
  }

  private static float element(byte[] packed, int i) {
    return E2M1.decode(packed[i / 2] >> 4 * (i % 2));
  }

  private static int bits(float value) {
    return Float.isNaN(value) ? NAN : Float.floatToRawIntBits(value);
  }

  private static ByteBuffer little(byte[] payload) {
    return ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN);
  }
}
