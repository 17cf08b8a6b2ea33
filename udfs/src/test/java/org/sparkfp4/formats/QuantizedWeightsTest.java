package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The reference of quantized sources against their rule, worked out element by element in double. */
class QuantizedWeightsTest {
  private static final int ROWS = 70;
  private static final int COLS = 208;

  /** A quantized tensor, and its weights as the rule says. */
  private record Sample(WeightScheme scheme, ByteBuffer codes, ByteBuffer scales, float[] weights) {
    static Sample of(String text, int rows, int cols) {
      WeightScheme scheme = WeightScheme.parse(text);
      Random random = new Random(17);
      int[] code = random.ints(rows * cols, 0, 1 << scheme.codes().bits()).toArray();
      ByteBuffer codes = ByteBuffer.allocate((int) scheme.codeBytes(rows, cols)).order(ByteOrder.LITTLE_ENDIAN);
      int blockRows = scheme.blockRows() == 0 ? rows : (int) scheme.blockRows();
      int blockCols = scheme.blockCols() == 0 ? cols : (int) scheme.blockCols();
      int scaleCols = (cols + blockCols - 1) / blockCols;
      double[] scale = new double[(rows + blockRows - 1) / blockRows * scaleCols];
      ByteBuffer scales = ByteBuffer.allocate(scale.length * scheme.scales().bytes()).order(ByteOrder.LITTLE_ENDIAN);
      for (int i = 0; i < scale.length; i++) {
        scale[i] = putScale(scheme.scales(), scales, random);
      }

      float[] weights = new float[rows * cols];
      for (int row = 0; row < rows; row++) {
        for (int col = 0; col < cols; col++) {
          int c = code[row * cols + col];
          if (scheme.codes() == CodeType.E4M3) {
            c = (c & 0x7F) == 0x7F ? 0 : c;
            codes.put(row * cols + col, (byte) c);
          } else {
            int at = row * codes.capacity() / rows + col / 8 * 4;
            codes.putInt(at, codes.getInt(at) | c << 4 * (col % 8));
          }

          double s = scale[row / blockRows * scaleCols + col / blockCols];
          // Exact in double, and so rounded once.
          weights[row * cols + col] = (float) (value(scheme.codes(), c) * s);
        }
      }

      return new Sample(scheme, codes, scales.flip(), weights);
    }

    private static double putScale(ScaleType type, ByteBuffer scales, Random random) {
      int exponent = random.nextInt(10) - 9;
      int mantissa = type == ScaleType.E8M0 ? 0 : random.nextInt(128);
      float value = Math.scalb(1 + mantissa / 128f, exponent);
      switch (type) {
        case F32 -> scales.putFloat(value);
        case BF16 -> scales.putShort((short) (Float.floatToRawIntBits(value) >>> 16));
        case F16 -> scales.putShort((short) (exponent + 15 << 10 | mantissa << 3));
        case E8M0 -> scales.put((byte) (exponent + 127));
      }

      return value;
    }

    private static double value(CodeType type, int code) {
      return switch (type) {
        case E4M3 -> (code < 128 ? 1 : -1) * Grid.E4M3_VALUES.value(code & 0x7F);
        case INT4 -> code - 8;
        case E2M1 -> (code < 8 ? 1 : -1) * Grid.E2M1_VALUES.value(code & 7);
      };
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"E4M3/F32/128x128", "E4M3/F32/32x32", "E4M3/BF16/*x*", "E4M3/F32/1x*", "E4M3/E8M0/64x128",
      "INT4/BF16/1x32", "INT4/F16/1x64", "INT4/F32/1x128", "E2M1/E8M0/1x32", "E2M1/F16/1x16"})
  void dequantizedThenEncodedAsF32(String text) {
    Sample sample = Sample.of(text, ROWS, COLS);
    ByteBuffer plain = Encoded.f32(sample.weights);

    float amax = Nvfp4.amax(sample.scheme, sample.codes, sample.scales, ROWS, COLS);

    assertThat(amax).isEqualTo(Nvfp4.amax(ElementType.F32, plain));
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      Encoded expected = Encoded.of(recipe, ElementType.F32, plain, ROWS, COLS);
      byte[] packed = new byte[ROWS * COLS / 2];
      byte[] scales = new byte[ROWS * COLS / 16];
      ErrorSums sums = new ErrorSums();
      Nvfp4.encode(recipe, sample.scheme, sample.codes, sample.scales, ROWS, COLS, expected.globalScale(),
          ByteBuffer.wrap(packed), ByteBuffer.wrap(scales), sums);
      assertThat(packed).isEqualTo(expected.packed());
      assertThat(scales).isEqualTo(expected.scales());
      assertThat(sums.squares()).isEqualTo(expected.sums().squares());
      assertThat(sums.squaredErrors()).isEqualTo(expected.sums().squaredErrors());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"E4M3/F32/32x48", "INT4/BF16/1x32", "E4M3/F16/1x*"})
  void toBf16IsRoundedToNearestEven(String text) {
    Sample sample = Sample.of(text, 9, 136);
    ByteBuffer out = ByteBuffer.allocate(2 * 9 * 136);

    Dequantizer.toBf16(sample.scheme, sample.codes, sample.scales, 9, 136, out);

    assertThat(out.array()).isEqualTo(Encoded.bf16(sample.weights).array());
  }

  @Test
  void nonFiniteElementsAreNamed() {
    WeightScheme scheme = WeightScheme.parse("E4M3/F32/2x16");
    ByteBuffer codes = ByteBuffer.allocate(64);
    ByteBuffer scales = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putFloat(0, 1).putFloat(4, 1);
    codes.put(35, (byte) 0xFF);
    assertNonFinite(scheme, codes, scales, "Invalid weight: NaN at element 35 of segment 0, must be finite");
    scales.putFloat(4, Float.POSITIVE_INFINITY);
    assertNonFinite(scheme, codes, scales, "Invalid weight: NaN at element 16 of segment 0, must be finite");
    codes.put(3, (byte) 0x7E);
    scales.putFloat(0, -0x1p126f);
    assertNonFinite(scheme, codes, scales, "Invalid weight: -Infinity at element 3 of segment 0, must be finite");
  }

  private static void assertNonFinite(WeightScheme scheme, ByteBuffer codes, ByteBuffer scales, String message) {
    ByteBuffer out = ByteBuffer.allocate(128);
    assertThatThrownBy(() -> Nvfp4.amax(scheme, codes, scales, 2, 32)).isInstanceOf(NonFiniteException.class)
        .hasMessage(message);
    assertThatThrownBy(() -> Nvfp4.encode(Nvfp4Recipe.MODELOPT, scheme, codes, scales, 2, 32, 1, out, out, null))
        .isInstanceOf(NonFiniteException.class).hasMessage(message);
    assertThatThrownBy(() -> Dequantizer.toBf16(scheme, codes, scales, 2, 32, out))
        .isInstanceOf(NonFiniteException.class).hasMessage(message);
  }

  @Test
  void buffersMustFit() {
    WeightScheme scheme = WeightScheme.parse("INT4/BF16/1x32");
    ByteBuffer room = ByteBuffer.allocate(32);
    assertRefused(() -> Nvfp4.amax(scheme, ByteBuffer.allocate(31), ByteBuffer.allocate(4), 1, 64),
        "Invalid codes: 31 bytes, [1, 64] of INT4/BF16/1x32 has 32");
    assertRefused(() -> Nvfp4.amax(scheme, room, ByteBuffer.allocate(2), 1, 64),
        "Invalid scales: 2 bytes, [1, 64] of INT4/BF16/1x32 has 4");
    assertRefused(() -> Nvfp4.amax(scheme, room, ByteBuffer.allocate(4), 1, 63),
        "Invalid shape: [1, 63], columns must be a multiple of 16 and neither side negative");
    assertRefused(() -> Dequantizer.toBf16(scheme, room, ByteBuffer.allocate(4), 1, 64, room),
        "Invalid buffer: out has room for 32 bytes, needs 128");
  }

  private static void assertRefused(Runnable call, String message) {
    assertThatThrownBy(call::run).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }
}
