package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.sparkfp4.kernels.QuantizedBytes.gaussian;
import static org.sparkfp4.kernels.QuantizedBytes.packed;
import static org.sparkfp4.kernels.QuantizedBytes.randomCodes;
import static org.sparkfp4.kernels.QuantizedBytes.scales;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleType;
import org.sparkfp4.formats.WeightScheme;

/** Every tier that this machine has against the reference, for quantized sources: bytes, and sums bit for bit. */
class QuantizedKernelTest {
  private static final String[] SCHEMES = {"E4M3/F32/128x128", "E4M3/BF16/128x128", "E4M3/E8M0/32x32",
      "E4M3/E8M0/1x32", "E4M3/F32/*x*",
      "E4M3/BF16/*x*", "E4M3/F32/1x*", "E4M3/BF16/1x*", "E4M3/F16/64x48", "INT4/BF16/1x32", "INT4/F16/1x64",
      "INT4/F32/1x128", "INT4/BF16/1x*", "E2M1/E8M0/1x32", "E2M1/F32/1x16", "E2M1/BF16/2x80"};

  /** Partial blocks at both edges, tails of strips, rows that end within a strip, segments of any address. */
  @ParameterizedTest
  @ValueSource(strings = {"1x16", "3x48", "37x272", "130x144", "5x1040", "1x4096", "257x32"})
  void shapes(String shape) {
    int rows = Integer.parseInt(shape.split("x")[0]);
    int cols = Integer.parseInt(shape.split("x")[1]);
    Random random = new Random(rows);
    for (String text : SCHEMES) {
      WeightScheme scheme = WeightScheme.parse(text);
      new QuantizedUnit(scheme, cols, gaussian(scheme, rows, cols, random),
          gaussian(scheme, 1 + rows / 3, cols, random), gaussian(scheme, 0, cols, random)).check();
    }
  }

  @Test
  void noElements() {
    WeightScheme scheme = WeightScheme.parse("E4M3/F32/128x128");
    new QuantizedUnit(scheme, 32).check();
    new QuantizedUnit(scheme, 0, new QuantizedUnit.Segment(new byte[0], new byte[0], 3)).check();
  }

  /** Rows of every finite code, each row under one of many scales, those that overflow apart. */
  @ParameterizedTest
  @EnumSource
  void everyCodeUnderManyScales(CodeType type) {
    float[] scales = {1, 0.0123f, 1e-4f, 0x1.fffffep-8f, 0x1p-60f, 0x1.fffffep-61f, 0x1p-70f, 0x1p-117f, 0x1p-126f,
        0x1p-130f, 0x1p-149f, 0, -0f, 0x1p60f, 0x1.000002p60f, 0x1p100f, -0.02f, -1e-30f};
    for (float scale : scales) {
      for (float neighbour : new float[] {1, 0.37f, 1e-3f}) {
        everyCode(type, scale, scale * neighbour).check();
        everyCode(type, scale, scale).check(Math.max(1e-30f, Math.abs(scale) * 3000 / neighbour));
      }
    }

    everyCode(type, 0x1p119f, 0x1p100f).check();
    everyCode(type, 0x1p125f, 0x1p100f).check();
    everyCode(type, Float.NaN, 1).check();
    everyCode(type, 1, Float.POSITIVE_INFINITY).check();
    everyCode(type, Float.NEGATIVE_INFINITY, 1).check();
  }

  /** Two rows that hold each finite code at every place of a block, under a scale each. */
  private static QuantizedUnit everyCode(CodeType type, float first, float second) {
    int codes = 1 << type.bits();
    int cols = 16 * codes;
    int[] row = new int[2 * cols];
    for (int i = 0; i < row.length; i++) {
      int code = (i + i / codes * 17) % codes;
      row[i] = type == CodeType.E4M3 && (code & 0x7F) == 0x7F ? 0 : code;
    }

    WeightScheme scheme = new WeightScheme(type, ScaleType.F32, 1, 0);
    return new QuantizedUnit(scheme, cols,
        new QuantizedUnit.Segment(packed(type, row), scales(ScaleType.F32, first, second), 2));
  }

  @ParameterizedTest
  @EnumSource(names = {"E4M3", "E2M1"})
  void everyE8M0Scale(CodeType type) {
    WeightScheme scheme = new WeightScheme(type, ScaleType.E8M0, 1, 32);
    Random random = new Random(3);
    for (int first = 0; first < 256; first += 8) {
      byte[] scales = new byte[8];
      for (int i = 0; i < 8; i++) {
        scales[i] = (byte) (first + i);
      }

      new QuantizedUnit(scheme, 32, new QuantizedUnit.Segment(randomCodes(type, 8 * 32, random), scales, 8)).check();
    }
  }

  /** Quotients on the midpoints of E2M1, which powers of two as scales and as amax over 2688 make common. */
  @ParameterizedTest
  @EnumSource
  void ties(CodeType type) {
    WeightScheme scheme = new WeightScheme(type, ScaleType.F32, 1, 32);
    Random random = new Random(5);
    for (int round = 0; round < 20; round++) {
      float[] scales = new float[64];
      for (int i = 0; i < scales.length; i++) {
        scales[i] = Math.scalb(round % 2 == 0 ? 1f : 1.5f, random.nextInt(12) - 8);
      }

      QuantizedUnit unit = new QuantizedUnit(scheme, 256, new QuantizedUnit.Segment(
          randomCodes(type, 8 * 256, random), scales(ScaleType.F32, scales), 8));
      unit.check(2688 * Math.scalb(1f, round - 10));
      unit.check(unit.referenceAmax() * (1 + random.nextFloat()));
    }
  }

  /** Scales of any bits at all, which end in the same error everywhere if one is not finite. */
  @ParameterizedTest
  @EnumSource
  void randomScales(ScaleType type) {
    Random random = new Random(7);
    for (CodeType codes : CodeType.values()) {
      WeightScheme scheme = new WeightScheme(codes, type, 1, 16);
      for (int round = 0; round < 20; round++) {
        byte[] scales = new byte[2 * 40 * type.bytes()];
        random.nextBytes(scales);
        new QuantizedUnit(scheme, 640,
            new QuantizedUnit.Segment(randomCodes(codes, 2 * 640, random), scales, 2)).check();
      }
    }
  }

  @Test
  void amaxOfOtherRows() {
    Random random = new Random(9);
    for (String text : SCHEMES) {
      WeightScheme scheme = WeightScheme.parse(text);
      QuantizedUnit unit = new QuantizedUnit(scheme, 160, gaussian(scheme, 20, 160, random));
      for (float amax : new float[] {1, 1e4f, 1e9f, 1e30f}) {
        unit.check(amax);
      }
    }
  }

  @ParameterizedTest
  @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "INT4")
  void zeros(CodeType type) {
    WeightScheme scheme = new WeightScheme(type, ScaleType.F32, 1, 32);
    float[] scales = new float[64];
    Arrays.fill(scales, 0.01f);
    QuantizedUnit.Segment zeros = new QuantizedUnit.Segment(new byte[64 * 32 * type.bits() / 8],
        scales(ScaleType.F32, scales), 64);
    new QuantizedUnit(scheme, 32, zeros).check();
    new QuantizedUnit(scheme, 32, zeros, gaussian(scheme, 20, 32, new Random(1))).check();
  }

  /** NaN codes and scales that are not finite, in the first, a middle and the last place of either segment. */
  @Test
  void firstNonFiniteElementIsNamed() {
    WeightScheme scheme = WeightScheme.parse("E4M3/F32/1x32");
    Random random = new Random(11);
    for (int place : new int[] {0, 1, 15, 16, 255, 256, 5000, 37 * 96 - 1}) {
      for (int code : new int[] {0x7F, 0xFF}) {
        QuantizedUnit.Segment good = gaussian(scheme, 37, 96, random);
        QuantizedUnit.Segment bad = gaussian(scheme, 37, 96, random);
        bad.codes()[place % bad.codes().length] = (byte) code;
        new QuantizedUnit(scheme, 96, bad, good).check();
        new QuantizedUnit(scheme, 96, good, bad).check();
        new QuantizedUnit(scheme, 96, good, bad).check(1);
      }
    }

    for (int place : new int[] {0, 1, 55, 110}) {
      QuantizedUnit.Segment bad = gaussian(scheme, 37, 96, random);
      ByteBuffer.wrap(bad.scales()).order(ByteOrder.LITTLE_ENDIAN).putFloat(4 * place, Float.POSITIVE_INFINITY);
      new QuantizedUnit(scheme, 96, gaussian(scheme, 3, 96, random), bad).check();
      new QuantizedUnit(scheme, 96, bad).check(1);
    }
  }

  @Test
  void piecesOfTheJavaTier() {
    Random random = new Random(13);
    for (String text : new String[] {"E4M3/F32/128x128", "E4M3/F32/*x*", "INT4/BF16/1x32"}) {
      WeightScheme scheme = WeightScheme.parse(text);
      new QuantizedUnit(scheme, 96, gaussian(scheme, 300, 96, random), gaussian(scheme, 40, 96, random))
          .check(new JavaKernel(256));
    }
  }

  /** Tensors that stay unquantized may have any number of columns. */
  @Test
  void bfloat16OfAnyColumns() {
    Random random = new Random(15);
    for (String text : SCHEMES) {
      WeightScheme scheme = WeightScheme.parse(text);
      for (int cols : new int[] {1, 7, 33, 130, 600}) {
        new QuantizedUnit(scheme, cols, gaussian(scheme, 70, cols, random)).checkBf16();
      }
    }
  }

  /** Rows of more scales than are read at once, and NaN behind the first of them. */
  @Test
  void bfloat16OfManyScales() {
    Random random = new Random(16);
    for (String text : new String[] {"INT4/BF16/1x32", "E2M1/E8M0/1x32", "E4M3/E8M0/1x32", "E4M3/F32/1x16",
        "INT4/F16/1x64"}) {
      WeightScheme scheme = WeightScheme.parse(text);
      int cols = (int) (1500 * scheme.blockCols() + 7);
      QuantizedUnit.Segment segment = gaussian(scheme, 2, cols, random);
      new QuantizedUnit(scheme, cols, segment).checkBf16();
      if (scheme.codes() == CodeType.E4M3) {
        segment.codes()[cols + 1300 * 16 + 5] = (byte) 0xFF;
        new QuantizedUnit(scheme, cols, segment).checkBf16();
      }
    }
  }

  /** No vector of codes with a subnormal, then one of them at each place: the two have ways of their own. */
  @Test
  void subnormalsAmongOthers() {
    Random random = new Random(17);
    WeightScheme scheme = WeightScheme.parse("E4M3/F32/1x*");
    int rows = 260;
    int cols = 256;
    byte[] codes = new byte[rows * cols];
    float[] scales = new float[rows];
    for (int row = 0; row < rows; row++) {
      for (int col = 0; col < cols; col++) {
        int magnitude = random.nextInt(40) == 0 ? 0 : 8 + random.nextInt(0x7F - 8);
        codes[row * cols + col] = (byte) (random.nextInt(2) << 7 | magnitude);
      }

      if (row >= 4) {
        codes[row * cols + row - 4] = (byte) (1 + random.nextInt(7));
      }

      scales[row] = switch (row) {
        case 0, 4 -> 0x1.fffffep6f;
        case 1, 5 -> 0x1p7f;
        case 2, 6 -> -0.5f;
        default -> 0.01f * random.nextFloat();
      };
    }

    new QuantizedUnit(scheme, cols, new QuantizedUnit.Segment(codes, scales(ScaleType.F32, scales), rows)).check();
  }

  /**
   * Each magnitude beside each that may be the largest of its block, with both signs, where blocks enough share a scale
   * for a table of them.
   */
  @Test
  void everyMagnitudeBelowEveryLargest() {
    WeightScheme scheme = WeightScheme.parse("E4M3/F32/*x*");
    byte[] codes = new byte[2 * pairs()];
    int at = 0;
    for (int sign = 0; sign < 2; sign++) {
      for (int largest = 0; largest < 0x7F; largest++) {
        for (int first = 0; first <= largest; first += 15) {
          for (int i = 0; i < 15; i++) {
            int magnitude = Math.min(first + i, largest);
            codes[at + i] = (byte) (magnitude | ((i + sign) % 2 << 7));
          }

          codes[at + 15] = (byte) (largest | sign << 7);
          at += 16;
        }
      }
    }

    float[] scales = {1, 0.0123f, 1e-4f, 0x1.fffffep-8f, 0x1.5p-9f, 0x1p-60f, 0x1.fffffep-61f, 0x1.fffffep6f, 0x1p7f,
        3e9f, 0, -0.5f};
    for (float scale : scales) {
      QuantizedUnit unit = new QuantizedUnit(scheme, codes.length,
          new QuantizedUnit.Segment(codes, scales(ScaleType.F32, scale), 1));
      unit.check();
      for (float factor : new float[] {0.01f, 1.7f, 6, 300}) {
        unit.check(Math.max(1e-30f, Math.abs(scale) * 448 * factor));
      }
    }
  }

  /** Elements of all blocks of fifteen magnitudes and their largest one. */
  private static int pairs() {
    int blocks = 0;
    for (int largest = 0; largest < 0x7F; largest++) {
      blocks += largest / 15 + 1;
    }

    return 16 * blocks;
  }

  /** Tables of scales that follow one another, with blocks among the others that no table has. */
  @ParameterizedTest
  @ValueSource(strings = {"E4M3/F32/128x128", "E4M3/BF16/32x*", "E4M3/F32/64x96", "E4M3/F32/1x*", "E4M3/E8M0/128x128"})
  void tablesOfManyScales(String text) {
    WeightScheme scheme = WeightScheme.parse(text);
    Random random = new Random(19);
    int rows = scheme.blockRows() == 1 ? 7 : 300;
    int cols = scheme.blockRows() == 1 ? 4192 : 416;
    QuantizedUnit.Segment segment = gaussian(scheme, rows, cols, random);
    byte[] codes = segment.codes();
    new QuantizedUnit(scheme, cols, segment).check();
    for (int i = 0; i < 40; i++) {
      int block = 16 * random.nextInt(codes.length / 16);
      byte code = (byte) (i % 4 == 0 ? 0x80 : i % 4 == 1 ? 0 : random.nextInt(0x30));
      Arrays.fill(codes, block, block + 16, code);
    }

    new QuantizedUnit(scheme, cols, gaussian(scheme, rows, cols, random), segment).check();
    codes[codes.length - 17] = 0x7F;
    new QuantizedUnit(scheme, cols, gaussian(scheme, rows, cols, random), segment).check();
  }

  /** Codes that would overflow under a scale, but are not there. */
  @Test
  void bfloat16OfTheCodesThatAreThere() {
    WeightScheme scheme = new WeightScheme(CodeType.INT4, ScaleType.F32, 1, 0);
    byte[] codes = new byte[16];
    Arrays.fill(codes, (byte) 0xF1);
    new QuantizedUnit(scheme, 32, new QuantizedUnit.Segment(codes, scales(ScaleType.F32, 0x1p125f), 1)).checkBf16();
    codes[9] = 0x0F;
    new QuantizedUnit(scheme, 32, new QuantizedUnit.Segment(codes, scales(ScaleType.F32, 0x1p125f), 1)).checkBf16();
  }

  @Test
  void refusesWhatIsNoSegment() {
    WeightScheme scheme = WeightScheme.parse("E4M3/F32/1x32");
    long[] one = {NativeMemory.room(256, 0).address()};
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      assertRefused(() -> kernel.amax(scheme, one, new long[2], one, 32),
          "Invalid segments: 2 addresses and 1 sizes, must be as many");
      assertRefused(() -> kernel.amax(scheme, one, one, new long[] {1}, 24),
          "Invalid columns: 24, must be a multiple of 16");
      assertRefused(() -> kernel.amax(scheme, one, new long[1], new long[] {1}, 32),
          "Invalid segment 0: size 1 at address 0");
      assertRefused(() -> kernel.encode(Nvfp4Recipe.MODELOPT, BlockSearch.RTN, scheme, one, one, new long[] {1}, 32, 1,
          64, 64, new ErrorSums[3]), "Invalid error sums: 3 for 1 segments, must be as many");
      assertRefused(() -> kernel.encode(Nvfp4Recipe.MODELOPT, BlockSearch.RTN, scheme, one, one, new long[] {1}, 32,
          -1, 64, 64, null),
          "Invalid amax: -1.0, must be finite and not negative");
      assertRefused(() -> kernel.dequantizeToBf16(scheme, 64, 64, 1, -1, 64),
          "Invalid columns: -1, must not be negative");
      assertRefused(() -> kernel.dequantizeToBf16(scheme, 64, 0, 1, 1, 64), "Invalid segment 0: size 1 at address 0");
    }
  }

  private static void assertRefused(Runnable call, String message) {
    assertThatThrownBy(call::run).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }
}
