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
  private static final int COLS = 288;

  /** Every finite bfloat16 that is not negative, 256 a call, so that none takes the table of another. */
  @Test
  void everyScaleOfInt4() {
    Random random = new Random(1);
    for (int first = 0; first < 0x7F80; first += 256) {
      short[] scales = new short[Math.min(256, 0x7F80 - first)];
      for (int i = 0; i < scales.length; i++) {
        scales[i] = (short) (first + i);
      }

      QuantizedUnit unit = int4(scales, random);
      unit.check();
      // Block scales that are E4M3's least, subnormal, and its greatest.
      float amax = unit.referenceAmax();
      if (amax > 1e-30f && amax < 1e30f) {
        unit.check(amax * 1e5f * (1 + random.nextFloat()));
        unit.check(amax * 1e-2f * (1 + random.nextFloat()));
      }
    }
  }

  @ParameterizedTest
  @ValueSource(floats = {1e-30f, 1e-10f, 1e-3f, 1, 3, 2688, 1e10f, 1e30f})
  void everyScaleOfMxfp4(float amax) {
    Random random = new Random(2);
    byte[] scales = new byte[251];
    for (int i = 0; i < scales.length; i++) {
      scales[i] = (byte) i;
    }

    WeightScheme scheme = new WeightScheme(CodeType.E2M1, ScaleType.E8M0, 1, 0);
    new QuantizedUnit(scheme, COLS, new QuantizedUnit.Segment(codes(CodeType.E2M1, scales.length, random), scales,
        scales.length)).check(amax);
  }

  /** More scales than there is room for, some of them negative, zero or not finite, and groups that end amid a strip. */
  @ParameterizedTest
  @ValueSource(ints = {7, 600, 5000, 0x7F00})
  void manyScales(int kinds) {
    Random random = new Random(kinds);
    for (int odd : new int[] {Integer.MAX_VALUE, 500}) {
      short[] scales = new short[400];
      for (int i = 0; i < scales.length; i++) {
        scales[i] = (short) (kinds == 0x7F00 ? random.nextInt(kinds) : 0x3400 + random.nextInt(kinds));
        if (random.nextInt(odd) == 0) {
          scales[i] = (short) (random.nextBoolean() ? 0 : 0x8000 | scales[i]);
        }
      }

      QuantizedUnit unit = int4(scales, random);
      unit.check();
      scales[scales.length / 2] = (short) 0x7FC0;
      int4(scales, random).check();
    }
  }

  /** Two tensors of one call: the tables of the first are the second's, too. */
  @Test
  void segmentsShareTables() {
    Random random = new Random(3);
    WeightScheme scheme = new WeightScheme(CodeType.INT4, ScaleType.BF16, 1, 32);
    new QuantizedUnit(scheme, 1040, QuantizedKernelTest.gaussian(scheme, 61, 1040, random),
        QuantizedKernelTest.gaussian(scheme, 30, 1040, random)).check();
  }

  /** A row a scale, whose blocks have every largest code. */
  private static QuantizedUnit int4(short[] scales, Random random) {
    byte[] bytes = new byte[2 * scales.length];
    for (int i = 0; i < scales.length; i++) {
      bytes[2 * i] = (byte) scales[i];
      bytes[2 * i + 1] = (byte) (scales[i] >> 8);
    }

    WeightScheme scheme = new WeightScheme(CodeType.INT4, ScaleType.BF16, 1, 0);
    return new QuantizedUnit(scheme, COLS,
        new QuantizedUnit.Segment(codes(CodeType.INT4, scales.length, random), bytes, scales.length));
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
