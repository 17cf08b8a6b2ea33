package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.sparkfp4.formats.Nvfp4Recipe.COMPRESSED_TENSORS;
import static org.sparkfp4.formats.Nvfp4Recipe.MODELOPT;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class Mxfp4Test {
  private static final int BIAS = 127;

  private final byte[] codes = new byte[16 * 40];
  private final byte[] packed = new byte[codes.length];
  private final byte[] scalesOut = new byte[2 * 40];
  private final ErrorSums sums = new ErrorSums();

  private long cast(Nvfp4Recipe recipe, byte[] scales, int kmax) {
    return Mxfp4.cast(recipe, ByteBuffer.wrap(codes, 0, 16 * scales.length), ByteBuffer.wrap(scales), scales.length, 32,
        kmax, ByteBuffer.wrap(packed), ByteBuffer.wrap(scalesOut), sums);
  }

  /** Each of the 18 exponents: what is decoded is what the source says, bit for bit. */
  @ParameterizedTest
  @EnumSource
  void exactWithinSeventeenOfTheLargest(Nvfp4Recipe recipe) {
    new Random(1).nextBytes(codes);
    byte[] scales = new byte[18];
    for (int i = 0; i < scales.length; i++) {
      scales[i] = (byte) (120 - i);
    }

    assertThat(cast(recipe, scales, 120 - BIAS)).isZero();

    assertThat(sums.squaredErrors()).isZero();
    assertThat(sums.squares()).isPositive();
    float[] out = new float[32 * scales.length];
    Nvfp4.decode(recipe, ByteBuffer.wrap(packed), ByteBuffer.wrap(scalesOut), scales.length, 32,
        Mxfp4.globalScale(recipe, 120 - BIAS), FloatBuffer.wrap(out));
    for (int i = 0; i < out.length; i++) {
      int code = codes[i / 2] >>> 4 * (i % 2) & 0xF;
      double magnitude = Grid.E2M1_VALUES.value(code & 7) * Math.pow(2, 120 - i / 32 - BIAS);
      assertThat(out[i]).as("element %d", i).isEqualTo((float) (code < 8 ? magnitude : -magnitude));
      assertThat(packed[i / 2]).isEqualTo(codes[i / 2]);
    }
  }

  @Test
  void smallerScalesAreQuantizedAnew() {
    // The second half of the block stays zero.
    codes[16] = 0x7;
    codes[17] = (byte) 0x9A;
    byte[] scales = {120, 102};

    assertThat(cast(MODELOPT, scales, 120 - BIAS)).isEqualTo(2);

    // The scale would be 2^-10, and is 2^-9, so that elements are halved: 6 to 3, -1 to -0.5, and -0.5 to a tie.
    assertThat(scalesOut[2]).isEqualTo((byte) 1);
    assertThat(packed[16]).isEqualTo((byte) 0x5);
    assertThat(packed[17]).isEqualTo((byte) 0x89);
    assertThat(scalesOut[3]).isEqualTo((byte) 0x38);
    assertThat(sums.squaredErrors()).isPositive();
  }

  @Test
  void zeroScaleMeansZeros() {
    new Random(2).nextBytes(codes);
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      assertThat(cast(recipe, new byte[] {0, 120}, 120 - BIAS)).isZero();
      assertThat(scalesOut).startsWith(recipe.zeroScale(), recipe.zeroScale(), 0x78, 0x78);
      assertThat(ByteBuffer.wrap(packed).getLong(0)).isZero();
      assertThat(ByteBuffer.wrap(packed).getLong(8)).isZero();
      assertThat(packed[16]).isEqualTo(codes[16]);
    }
  }

  @Test
  void unitsWithoutAUsableGlobalScaleAreZero() {
    new Random(3).nextBytes(codes);
    for (byte largest : new byte[] {0, 1, 8}) {
      assertThat(cast(COMPRESSED_TENSORS, new byte[] {largest, 0}, largest - BIAS)).isZero();
      assertThat(packed).startsWith(new byte[32]);
      assertThat(scalesOut).startsWith(0x20, 0x20, 0x20, 0x20);
      assertThat(Nvfp4.isZero(Mxfp4.amax(largest - BIAS))).isTrue();
      assertThat(Mxfp4.globalScale(MODELOPT, largest - BIAS)).isEqualTo(1 / 2688f);
      assertThat(Mxfp4.globalScale(COMPRESSED_TENSORS, largest - BIAS)).isEqualTo(1);
    }

    assertThat(Nvfp4.isZero(Mxfp4.amax(9 - BIAS))).isFalse();
    assertThat(Mxfp4.globalScale(MODELOPT, 9 - BIAS)).isEqualTo(0x1p-126f);
    assertThat(Mxfp4.globalScale(COMPRESSED_TENSORS, 9 - BIAS)).isEqualTo(0x1p126f);
  }

  @Test
  void amaxStandsForTheLargestExponent() {
    for (int kmax = -127; kmax <= 124; kmax++) {
      assertThat((double) Mxfp4.amax(kmax)).isEqualTo(2688 * Math.pow(2, kmax - 8));
      assertThat(Mxfp4.exponent(Mxfp4.amax(kmax))).isEqualTo(kmax);
    }

    assertThat(Mxfp4.globalScale(MODELOPT, -2)).isEqualTo(0x1p-10f);
    assertThat(Mxfp4.globalScale(COMPRESSED_TENSORS, -2)).isEqualTo(0x1p10f);
    assertRefused(() -> Mxfp4.amax(125), "Invalid exponent: 125, must be from -127 to 124");
    assertRefused(() -> Mxfp4.amax(-128), "Invalid exponent: -128, must be from -127 to 124");
    for (float amax : new float[] {0, 1, 2689, Float.NaN, 0x1p127f}) {
      assertRefused(() -> Mxfp4.exponent(amax),
          "Invalid amax: " + amax + ", must be 2688 times a power of two for MXFP4");
    }
  }

  @Test
  void largestExponent() {
    assertThat(Mxfp4.largestExponent(ByteBuffer.wrap(new byte[] {3, (byte) 250, (byte) 130}))).isEqualTo(123);
    assertThat(Mxfp4.largestExponent(ByteBuffer.allocate(0))).isEqualTo(-127);
    assertNonFinite(new byte[] {1, 2, (byte) 255}, "NaN");
    assertNonFinite(new byte[] {1, 2, (byte) 252}, "Infinity");
  }

  private void assertNonFinite(byte[] scales, String value) {
    String message = "Invalid weight: " + value + " at element 64 of segment 0, must be finite";
    assertThatThrownBy(() -> Mxfp4.largestExponent(ByteBuffer.wrap(scales))).isInstanceOf(NonFiniteException.class)
        .hasMessage(message);
    assertThatThrownBy(() -> cast(MODELOPT, scales, 0)).isInstanceOf(NonFiniteException.class).hasMessage(message);
    assertThatThrownBy(() -> cast(MODELOPT, scales, -120)).isInstanceOf(NonFiniteException.class).hasMessage(message);
  }

  @Test
  void refusals() {
    String above = ", a block has a larger scale than 2^%d; it must be the largest of all tensors that share the "
        + "global scale";
    assertRefused(() -> cast(MODELOPT, new byte[] {120}, -8), "Invalid exponent: -8" + String.format(above, -8));
    assertRefused(() -> cast(MODELOPT, new byte[] {120}, -120), "Invalid exponent: -120" + String.format(above, -120));
    ByteBuffer room = ByteBuffer.allocate(64);
    assertRefused(() -> Mxfp4.cast(MODELOPT, room, room, 1, 48, 0, room, room, null),
        "Invalid shape: [1, 48], columns must be a multiple of 32");
    assertRefused(() -> Mxfp4.cast(MODELOPT, room, room, 8, 32, 0, room, room, null),
        "Invalid buffer: packed has room for 64 elements, needs 128");
  }

  private static void assertRefused(Runnable call, String message) {
    assertThatThrownBy(call::run).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }
}
