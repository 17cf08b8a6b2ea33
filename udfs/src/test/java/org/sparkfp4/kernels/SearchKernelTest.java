package org.sparkfp4.kernels;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.WeightScheme;
import org.sparkfp4.formats.Weighting;

/** Every tier that this machine has against the reference, which tries all 126 scales, for every search. */
class SearchKernelTest {
  private static final SearchCase SWEEP = SearchCase.of(ScaleSearch.SWEEP);
  private static final SearchCase FOUR_OVER_SIX = SearchCase.of(ScaleSearch.FOUR_OVER_SIX);

  /** Tails of strips, strips that hold the ends of rows, several segments. */
  @ParameterizedTest
  @CsvSource({"16, 40, 1", "48, 11, 30", "272, 3, 1", "256, 1, 5", "1040, 2, 1", "4096, 1, 1"})
  void shapes(int cols, int rowsOfFirst, int rowsOfSecond) {
    Random random = new Random(cols);
    for (SearchCase search : SearchCase.all(cols, random)) {
      for (ElementType type : ElementType.values()) {
        Unit unit = new Unit(type, cols, gaussian(type, rowsOfFirst * cols, 0.02f, random),
            gaussian(type, rowsOfSecond * cols, 0.5f, random), new byte[0]);
        unit.check(search, unit.amax());
      }
    }
  }

  /** Every value of the type in blocks of nearby ones, and shuffled. */
  @ParameterizedTest
  @EnumSource(names = {"BF16", "F16"})
  void everyElement(ElementType type) {
    int infinity = type == ElementType.BF16 ? 0x7f80 : 0x7c00;
    int[] bits = new int[infinity / 8 * 16];
    for (int i = 0; i < bits.length; i++) {
      bits[i] = i / 2 | i % 2 * 0x8000;
    }

    Random random = new Random(19);
    for (int round = 0; round < 2; round++) {
      // Beside the largest value all others get the least scale: so, too, for amaxes below.
      for (float amax : new float[] {Unit.ofBits(type, bits).amax(), 1e-3f, 1, 1e5f}) {
        int[] below = Arrays.stream(bits).filter(x -> value(type, x & 0x7fff) <= amax).toArray();
        Unit unit = Unit.ofBits(type, Arrays.copyOf(below, below.length / 16 * 16));
        unit.check(SWEEP, amax);
        unit.check(FOUR_OVER_SIX, amax);
      }

      shuffle(bits, random);
    }
  }

  private static void shuffle(int[] bits, Random random) {
    for (int i = bits.length - 1; i > 0; i--) {
      int j = random.nextInt(i + 1);
      int other = bits[j];
      bits[j] = bits[i];
      bits[i] = other;
    }
  }

  /** Random bits in blocks of nearby exponents, of a wide and of a narrow spread. */
  @ParameterizedTest
  @EnumSource
  void randomBits(ElementType type) {
    Random random = new Random(21);
    int fraction = type == ElementType.F32 ? 23 : type == ElementType.BF16 ? 7 : 10;
    int exponents = type == ElementType.F16 ? 31 : 255;
    for (int round = 0; round < 24; round++) {
      int[] bits = new int[16 * 100];
      int center = round % 4 == 0 ? random.nextInt(exponents) : exponents / 2 + random.nextInt(5) - 2;
      int spread = 1 + random.nextInt(8);
      for (int i = 0; i < bits.length; i++) {
        int below = random.nextInt(spread) + i / 16 % (1 + round % 16);
        int exponent = Math.min(exponents - 1, Math.max(0, center - below));
        bits[i] = random.nextInt(2) << (8 * type.bytes() - 1) | exponent << fraction | random.nextInt(1 << fraction);
      }

      Unit unit = Unit.ofBits(type, bits);
      for (SearchCase search : SearchCase.all(16, random)) {
        unit.check(search, unit.amax());
      }
    }
  }

  /** Values on and beside midpoints of some scale: losses of several scales are equal, or all but. */
  @ParameterizedTest
  @EnumSource
  void ties(ElementType type) {
    Random random = new Random(23);
    float[] points = {0, 0.25f, 0.5f, 0.75f, 1, 1.25f, 1.5f, 1.75f, 2, 2.5f, 3, 3.5f, 4, 5, 6};
    for (int round = 0; round < 40; round++) {
      float amax = round % 2 == 0 ? Math.scalb(1.5f, round / 4 - 5) : 0.1f + random.nextFloat();
      int[] bits = new int[16 * 64];
      for (int block = 0; block < bits.length / 16; block++) {
        float d = amax / 1536 * (1 + random.nextInt(8) / 8f) * (1 << random.nextInt(8));
        int kinds = 1 + random.nextInt(15);
        int beside = random.nextInt(3);
        for (int i = 0; i < 16; i++) {
          float w = Math.min(amax, points[random.nextInt(kinds)] * d);
          int off = w == 0 || w == amax ? 0 : beside * (random.nextInt(3) - 1);
          bits[16 * block + i] = narrow(type, w) + off | random.nextInt(2) << (8 * type.bytes() - 1);
        }
      }

      Unit unit = Unit.ofBits(type, bits);
      for (SearchCase search : SearchCase.all(16, random)) {
        unit.check(search, amax);
      }
    }
  }

  /** One large value, two values, all of one magnitude, and a few magnitudes. */
  @ParameterizedTest
  @EnumSource
  void sparseAndEvenBlocks(ElementType type) {
    Random random = new Random(25);
    for (int round = 0; round < 20; round++) {
      int[] bits = new int[16 * 100];
      for (int block = 0; block < 100; block++) {
        float[] values = new float[1 + random.nextInt(3)];
        for (int i = 0; i < values.length; i++) {
          values[i] = Math.scalb(1 + random.nextFloat(), -random.nextInt(i == 0 ? 3 : 12));
        }

        int filled = block % 3 == 0 ? 16 : 1 + random.nextInt(4);
        for (int i = 0; i < filled; i++) {
          bits[16 * block + (i * 7 + block) % 16] = narrow(type, values[random.nextInt(values.length)]);
        }
      }

      Unit unit = Unit.ofBits(type, bits);
      for (SearchCase search : SearchCase.all(16, random)) {
        unit.check(search, unit.amax());
        unit.check(search, 1.1f * unit.amax());
      }
    }
  }

  /** Scales that are subnormal, or the largest there is, and units of extreme amax. */
  @ParameterizedTest
  @ValueSource(floats = {0x1p-149f, 0x1.5p-115f, 0x1p-100f, 0x1p-52f, 0x1p-48f, 0x1p-31f, 0x1p-29f, 1, 0x1p29f, 0x1p31f,
      0x1p59f, 0x1p61f, 0x1p100f, Float.MAX_VALUE})
  void tinyAndHugeAmax(float amax) {
    Random random = new Random(27);
    for (ElementType type : new ElementType[] {ElementType.BF16, ElementType.F32}) {
      int[] bits = new int[16 * 96];
      for (int i = 0; i < bits.length; i++) {
        float share = i == 0 ? 1 : Math.scalb(random.nextFloat(), -random.nextInt(i / 16 / 4 + 1));
        bits[i] = narrow(type, amax * share * (random.nextBoolean() ? 1 : -1));
      }

      Unit unit = Unit.ofBits(type, bits);
      for (SearchCase search : SearchCase.all(16, random)) {
        unit.check(search, unit.amax());
      }
    }
  }

  /** The job cuts a large unit by rows: its amax is that of other rows. */
  @Test
  void amaxOfOtherRows() {
    Random random = new Random(29);
    for (ElementType type : ElementType.values()) {
      Unit unit = new Unit(type, 32, gaussian(type, 32 * 100, 1e-3f, random));
      for (SearchCase search : SearchCase.all(32, random)) {
        for (float amax : new float[] {0.005f, 0.02f, 0.1f, 0.7f, 5, 1e9f}) {
          unit.check(search, amax);
        }
      }
    }
  }

  @Test
  void importanceOfExtremeSize() {
    Random random = new Random(31);
    Unit unit = new Unit(ElementType.BF16, 64, gaussian(ElementType.BF16, 64 * 30, 0.1f, random));
    for (float scale : new float[] {Float.MIN_VALUE, 1e-38f, 1e-30f, 1e-10f, 1e10f, 1e30f, 3e38f}) {
      float[] h = new float[64];
      float[] hessian = new float[1024];
      for (int i = 0; i < 64; i++) {
        h[i] = i % 5 == 0 ? 0 : scale * random.nextFloat();
        hessian[i / 16 * 256 + i % 16 * 17] = h[i];
      }

      unit.check(SearchCase.weighted(Weighting.DIAGONAL, h), unit.amax());
      unit.check(SearchCase.weighted(Weighting.HESSIAN, hessian), unit.amax());
      // Channels far apart: of most blocks only one counts.
      for (int i = 0; i < 64; i++) {
        h[i] = Math.scalb(random.nextFloat(), random.nextInt(200) - 100);
      }

      unit.check(SearchCase.weighted(Weighting.DIAGONAL, h), unit.amax());
    }
  }

  @Test
  void zeroBlocks() {
    for (ElementType type : ElementType.values()) {
      byte[] zeros = new byte[16 * 50 * type.bytes()];
      Random random = new Random(33);
      Unit unit = new Unit(type, 16, zeros, gaussian(type, 160, 1, random));
      for (SearchCase search : SearchCase.all(16, random)) {
        unit.check(search, unit.amax());
        new Unit(type, 16, zeros).check(search, 0);
      }
    }
  }

  @Test
  void piecesOfTheJavaTier() {
    Random random = new Random(35);
    ElementType type = ElementType.BF16;
    Unit unit = new Unit(type, 48, gaussian(type, 48 * 77, 1, random), gaussian(type, 48, 3, random));
    for (SearchCase search : SearchCase.all(48, random)) {
      unit.check(new JavaKernel(256), search);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"E4M3/F32/128x128", "E4M3/BF16/1x*", "E4M3/E8M0/32x32", "INT4/BF16/1x32", "E2M1/E8M0/1x32",
      "E2M1/BF16/2x80"})
  void quantizedSources(String text) {
    WeightScheme scheme = WeightScheme.parse(text);
    Random random = new Random(37);
    for (int cols : new int[] {32, 160, 1056}) {
      QuantizedUnit unit = new QuantizedUnit(scheme, cols, QuantizedBytes.gaussian(scheme, 5, cols, random),
          QuantizedBytes.gaussian(scheme, 3, cols, random));
      for (SearchCase search : SearchCase.all(cols, random)) {
        unit.check(search, unit.referenceAmax());
        unit.check(search, 40 * unit.referenceAmax());
      }
    }
  }

  private static byte[] gaussian(ElementType type, int elements, float deviation, Random random) {
    int[] bits = new int[elements];
    Arrays.setAll(bits, i -> narrow(type, (float) (random.nextGaussian() * deviation)));
    return Unit.bytes(type, bits);
  }

  private static int narrow(ElementType type, float w) {
    return switch (type) {
      case BF16 -> Float.floatToIntBits(w) >>> 16;
      case F16 -> Float16.fromFloat(w);
      case F32 -> Float.floatToIntBits(w);
    };
  }

  private static float value(ElementType type, int bits) {
    return type == ElementType.BF16 ? BFloat16.toFloat((short) bits) : Float16.toFloat((short) bits);
  }
}
