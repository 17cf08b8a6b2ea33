package org.sparkfp4.kernels;

import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.ScaleType;
import org.sparkfp4.formats.WeightScheme;

/**
 * Sources of few codes, in calls of so many blocks that the vector tiers look up what becomes of them: every scale with
 * every largest code, against the reference.
 */
class LookedUpBlocksTest {
  /** Rows of so many elements are looked up. */
  private static final int ROWS = 512;

  private static final int COLS = 1040;

  /** Every bfloat16 that has tables, and those around them: three octaves a call, as one place each allows. */
  @Test
  void everyScaleOfInt4() {
    Random random = new Random(1);
    for (int exponent = 64; exponent < 192; exponent += 3) {
      short[] scales = new short[ROWS];
      for (int i = 0; i < ROWS; i++) {
        scales[i] = (short) ((exponent << 7) + i % 384);
      }

      QuantizedUnit unit = int4(scales, random);
      unit.check(unit.referenceAmax());
    }
  }

  /** Block scales that are E4M3's subnormals, its least and its greatest. */
  @ParameterizedTest
  @ValueSource(floats = {1e-3f, 0.3f, 1.7f, 1e4f, 3e5f, 1e8f})
  void int4UnderOtherScales(float factor) {
    Random random = new Random(2);
    short[] scales = new short[ROWS];
    for (int i = 0; i < ROWS; i++) {
      scales[i] = (short) (0x3C00 + i % 384);
    }

    QuantizedUnit unit = int4(scales, random);
    unit.check(unit.referenceAmax() * factor);
  }

  @ParameterizedTest
  @ValueSource(floats = {1e-30f, 1e-10f, 1e-3f, 1, 3, 2688, 1e10f, 1e30f})
  void everyScaleOfMxfp4(float amax) {
    Random random = new Random(3);
    byte[] scales = new byte[251];
    for (int i = 0; i < scales.length; i++) {
      scales[i] = (byte) i;
    }

    WeightScheme scheme = new WeightScheme(CodeType.E2M1, ScaleType.E8M0, 1, 0);
    new QuantizedUnit(scheme, COLS, new QuantizedUnit.Segment(codes(CodeType.E2M1, scales.length, random), scales,
        scales.length)).check(amax);
  }

  /** As many scales as kinds: more than there is room for, too; some of them negative, zero or not finite. */
  @ParameterizedTest
  @ValueSource(ints = {7, 300, 5000, 0x7F00})
  void manyScales(int kinds) {
    Random random = new Random(kinds);
    for (int odd : new int[] {Integer.MAX_VALUE, 100}) {
      short[] scales = new short[32 * ROWS];
      for (int i = 0; i < scales.length; i++) {
        scales[i] = (short) (kinds == 0x7F00 ? random.nextInt(kinds) : 0x3400 + random.nextInt(kinds));
        if (random.nextInt(odd) == 0) {
          scales[i] = (short) (random.nextBoolean() ? 0 : 0x8000 | scales[i]);
        }
      }

      WeightScheme scheme = new WeightScheme(CodeType.INT4, ScaleType.BF16, 1, 32);
      byte[] codes = QuantizedBytes.randomCodes(CodeType.INT4, ROWS * 1024, random);
      new QuantizedUnit(scheme, 1024, new QuantizedUnit.Segment(codes, bytes(scales), ROWS)).check();
      scales[scales.length - 100] = (short) 0x7FC0;
      new QuantizedUnit(scheme, 1024, new QuantizedUnit.Segment(codes, bytes(scales), ROWS)).check(1);
    }
  }

  /** Two tensors of one call: the tables of the first are the second's, too. */
  @Test
  void segmentsShareTables() {
    Random random = new Random(4);
    for (String text : new String[] {"INT4/BF16/1x32", "E2M1/E8M0/1x32"}) {
      WeightScheme scheme = WeightScheme.parse(text);
      new QuantizedUnit(scheme, COLS, QuantizedBytes.gaussian(scheme, 401, COLS, random),
          QuantizedBytes.gaussian(scheme, 300, COLS, random)).check();
    }
  }

  /** A row a scale, whose blocks have every largest code. */
  private static QuantizedUnit int4(short[] scales, Random random) {
    WeightScheme scheme = new WeightScheme(CodeType.INT4, ScaleType.BF16, 1, 0);
    return new QuantizedUnit(scheme, COLS,
        new QuantizedUnit.Segment(codes(CodeType.INT4, scales.length, random), bytes(scales), scales.length));
  }

  private static byte[] bytes(short[] scales) {
    byte[] bytes = new byte[2 * scales.length];
    for (int i = 0; i < scales.length; i++) {
      bytes[2 * i] = (byte) scales[i];
      bytes[2 * i + 1] = (byte) (scales[i] >> 8);
    }

    return bytes;
  }

  private static byte[] codes(CodeType type, int rows, Random random) {
    int magnitudes = type == CodeType.INT4 ? 9 : 8;
    byte[] codes = new byte[rows * COLS / 2];
    for (int block = 0; block < rows * COLS / 16; block++) {
      int largest = block % magnitudes;
      int at = random.nextInt(16);
      for (int i = 0; i < 16; i++) {
        int magnitude = i == at ? largest : random.nextInt(largest + 1);
        boolean negative = magnitude == 8 || random.nextBoolean();
        int code = type == CodeType.INT4 ? 8 + (negative ? -magnitude : magnitude) : magnitude | (negative ? 8 : 0);
        codes[block * 8 + i / 2] |= (byte) (code << 4 * (i % 2));
      }
    }

    return codes;
  }
}
