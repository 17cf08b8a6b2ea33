package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.formats.GoldenFile;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4Recipe;

/** Every tier that this machine has against the reference: bytes, and sums bit for bit. */
class Nvfp4KernelTest {
  private static final int SIGN = 0x8000;

  @Test
  void goldenVectors() {
    for (String file : new String[] {"nvfp4_tensors", "nvfp4_ct_global_scale"}) {
      GoldenFile golden = GoldenFile.open(file);
      for (String name : golden.names()) {
        if (name.endsWith(".w")) {
          String tensor = name.substring(0, name.length() - 2);
          GoldenFile.Tensor w = golden.tensor(name);
          int cols = (int) w.shape()[w.shape().length - 1];
          Unit unit = new Unit(ElementType.of(w.dtype()), cols, w.bytes());
          checkGolden(golden, unit, Nvfp4Recipe.MODELOPT, tensor + ".modelopt.weight",
              tensor + ".modelopt.weight_scale");
          checkGolden(golden, unit, Nvfp4Recipe.COMPRESSED_TENSORS, tensor + ".ct.weight_packed",
              tensor + ".ct.weight_scale");
        }
      }
    }
  }

  private static void checkGolden(GoldenFile golden, Unit unit, Nvfp4Recipe recipe, String packed, String scales) {
    // A zero tensor is ours to define: the producers write NaN scales.
    if (golden.has(packed) && unit.amax() > 0) {
      unit.check(recipe, golden.tensor(packed).bytes(), golden.tensor(scales).bytes());
    }
  }

  /** For each of many block amaxes, each value of the type that a block of that amax can hold, with both signs. */
  @ParameterizedTest
  @EnumSource(names = {"BF16", "F16"})
  void everyElementUnderManyScales(ElementType type) {
    Random random = new Random(7);
    int infinity = type == ElementType.BF16 ? 0x7f80 : 0x7c00;
    for (int i = 0; i < 16; i++) {
      int anchor = i == 0 ? infinity - 1 : 1 + random.nextInt(infinity - 1);
      int[] bits = new int[2 * (anchor + 1) / 15 * 16];
      for (int j = 0, element = 0; j < bits.length; j++) {
        bits[j] = j % 16 == 0 ? anchor : element % 2 * SIGN + element++ / 2;
      }

      Unit unit = Unit.ofBits(type, bits);
      unit.check();
      unit.check(Math.min(unit.amax() * (1 + 5000 * random.nextFloat()), Float.MAX_VALUE));
    }
  }

  /** Random bits, in blocks of nearby exponents: a block of wholly random ones is one value and zeros. */
  @ParameterizedTest
  @EnumSource
  void randomBits(ElementType type) {
    Random random = new Random(11);
    int fraction = type == ElementType.F32 ? 23 : type == ElementType.BF16 ? 7 : 10;
    int exponents = type == ElementType.F16 ? 31 : 255;
    for (int round = 0; round < 30; round++) {
      int[] bits = new int[16 * 200 + 16 * random.nextInt(20)];
      int center = round == 0 ? 0 : random.nextInt(exponents);
      for (int i = 0; i < bits.length; i++) {
        int exponent = Math.min(exponents - 1, Math.max(0, center - random.nextInt(6) - i / 16 % 16));
        int sign = random.nextInt(2) << (8 * type.bytes() - 1);
        bits[i] = sign | exponent << fraction | random.nextInt(1 << fraction);
      }

      Unit.ofBits(type, bits).check();
      Arrays.setAll(bits, i -> finite(type, random.nextInt()));
      Unit.ofBits(type, bits).check();
    }
  }

  private static int finite(ElementType type, int bits) {
    int exponent = type == ElementType.F32 ? 0x7f800000 : type == ElementType.BF16 ? 0x7f80 : 0x7c00;
    return (bits & exponent) == exponent ? bits & ~exponent : bits;
  }

  /** Quotients on and right beside the midpoints of E2M1: w = midpoint * d and its neighbours, for many d. */
  @ParameterizedTest
  @EnumSource
  void midpointsAndTheirNeighbours(ElementType type) {
    float[] midpoints = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5};
    Random random = new Random(13);
    for (int round = 0; round < 60; round++) {
      float amax = Math.scalb(1 + random.nextFloat(), random.nextInt(12) - 8);
      int[] bits = new int[16 * 33];
      for (int block = 0; block < bits.length / 16; block++) {
        float largest = amax * (block == 0 ? 1 : 0.01f + random.nextFloat());
        // Near the d that such a block gets, so that some of the neighbours meet a midpoint.
        float d = largest / 6 * (0.95f + 0.1f * random.nextFloat());
        for (int i = 0; i < 16; i++) {
          float w = i == 0 ? largest : midpoints[i % 7] * d;
          bits[16 * block + i] = narrow(type, w) + random.nextInt(3) - 1 | random.nextInt(2) << (8 * type.bytes() - 1);
        }
      }

      Unit.ofBits(type, bits).check();
    }
  }

  private static int narrow(ElementType type, float w) {
    return switch (type) {
      case BF16 -> Float.floatToIntBits(w) >>> 16;
      case F16 -> Float16.fromFloat(w);
      case F32 -> Float.floatToIntBits(w);
    };
  }

  /** Tails of strips of 16 blocks, and segments that begin anywhere. */
  @ParameterizedTest
  @CsvSource({"16, 1, 1", "16, 7, 40", "48, 5, 3", "272, 3, 1", "256, 1, 2", "4096, 2, 1", "1040, 1, 3"})
  void oddShapesAndSeveralSegments(int cols, int rowsOfFirst, int rowsOfSecond) {
    for (ElementType type : ElementType.values()) {
      byte[] first = gaussian(type, rowsOfFirst * cols, 0.02f);
      byte[] second = gaussian(type, rowsOfSecond * cols, 0.5f);
      new Unit(type, cols, first, second, new byte[0], first).check();
    }
  }

  @Test
  void noElements() {
    new Unit(ElementType.BF16, 16).check();
    new Unit(ElementType.F32, 16, new byte[0]).check();
  }

  @ParameterizedTest
  @EnumSource
  void zeroBlocksAndZeroTensors(ElementType type) {
    byte[] zeros = new byte[16 * 50 * type.bytes()];
    new Unit(type, 16, zeros).check();
    new Unit(type, 16, zeros, gaussian(type, 160, 1)).check();
    new Unit(type, 16, negated(type, zeros), gaussian(type, 160, 1)).check();
  }

  private static byte[] negated(ElementType type, byte[] data) {
    byte[] negated = data.clone();
    for (int i = type.bytes() - 1; i < data.length; i += type.bytes()) {
      negated[i] ^= (byte) 0x80;
    }

    return negated;
  }

  /** Around the smallest amax that is not zero, and where d, or a weight over d, leaves the normal range. */
  @ParameterizedTest
  @ValueSource(floats = {0x1p-149f, 0x1.4p-115f, 0x1.5p-115f, 0x1.6p-115f, 0x1p-110f, 0x1p-90f, 0x1p-80f, 0x1p-79f,
      0x1p-60f, 0x1p3f, 0x1p4f, 0x1p5f, 0x1p20f, 0x1p27f, 0x1p60f, 0x1p126f, Float.MAX_VALUE})
  void tinyAndHugeAmax(float amax) {
    Random random = new Random(17);
    for (ElementType type : new ElementType[] {ElementType.BF16, ElementType.F32}) {
      int[] bits = new int[16 * 64];
      for (int i = 0; i < bits.length; i++) {
        float share = i == 0 ? 1 : Math.scalb(random.nextFloat(), -random.nextInt(i / 16 + 1));
        float w = amax * share * (random.nextBoolean() ? 1 : -1);
        // Beside the block's largest, the smallest values that there are.
        bits[i] = i % 5 == 4 ? random.nextInt(64) | random.nextInt(2) << (8 * type.bytes() - 1) : narrow(type, w);
      }

      Unit.ofBits(type, bits).check();
    }
  }

  /** The job cuts a large unit by rows: amax then comes from elsewhere, and may be wrong only by being too large. */
  @Test
  void amaxOfOtherRows() {
    for (ElementType type : ElementType.values()) {
      Unit unit = new Unit(type, 32, gaussian(type, 32 * 40, 1e-3f));
      for (float amax : new float[] {1, 1e4f, 1e9f, 1e30f}) {
        unit.check(amax);
      }
    }
  }

  @Test
  void piecesOfTheJavaTier() {
    ElementType type = ElementType.BF16;
    Unit unit = new Unit(type, 48, gaussian(type, 48 * 77, 1), gaussian(type, 48, 3));
    for (int piece : new int[] {256, 512, 2048}) {
      unit.check(new JavaKernel(piece));
    }
  }

  @ParameterizedTest
  @EnumSource
  void firstNonFiniteElementIsNamed(ElementType type) {
    int elements = 16 * 37;
    int nan = type == ElementType.F32 ? 0x7fc00000 : 0x7fc0;
    int minusInfinity = type == ElementType.F32 ? 0xff800000 : type == ElementType.BF16 ? 0xff80 : 0xfc00;
    IntStream inFirstBlocks = IntStream.range(0, 40);
    int[] indices = IntStream.concat(inFirstBlocks, IntStream.of(255, 256, 257, 511, 512, 575, 576, 591)).toArray();
    for (int index : indices) {
      int[] bits = new int[elements];
      Arrays.setAll(bits, i -> i == index ? nan : i > index ? minusInfinity : 1);
      byte[] good = gaussian(type, elements, 1);
      checkRefused(type, 1, index, Float.NaN, good, Unit.bytes(type, bits));
      Arrays.setAll(bits, i -> i == index ? minusInfinity : 1);
      checkRefused(type, 0, index, Float.NEGATIVE_INFINITY, Unit.bytes(type, bits), good);
    }
  }

  private static void checkRefused(ElementType type, int segment, long index, float value, byte[]... segments) {
    NativeMemory[] sources =
        Arrays.stream(segments).map(bytes -> NativeMemory.of(bytes, 1)).toArray(NativeMemory[]::new);
    long[] addresses = Arrays.stream(sources).mapToLong(NativeMemory::address).toArray();
    long[] elements = Arrays.stream(segments).mapToLong(bytes -> bytes.length / type.bytes()).toArray();
    long[] rows = Arrays.stream(elements).map(size -> size / 16).toArray();
    NativeMemory out = NativeMemory.room(Arrays.stream(segments).mapToInt(bytes -> bytes.length).sum(), 0);
    String message =
        "Invalid weight: " + value + " at element " + index + " of segment " + segment + ", must be finite";
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      assertThatThrownBy(() -> kernel.amax(type, addresses, elements)).as(kernel.tier())
          .isInstanceOf(NonFiniteException.class).hasMessage(message);
      assertThatThrownBy(() -> kernel.encode(Nvfp4Recipe.MODELOPT, BlockSearch.RTN, type, addresses, rows, 16, 6,
          out.address(), out.address() + out.size() / 2, null)).as(kernel.tier())
          .isInstanceOf(NonFiniteException.class).hasMessage(message);
    }
  }

  @Test
  void refusesWhatIsNoSegment() {
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      assertRefused(() -> kernel.amax(ElementType.BF16, new long[1], new long[2]),
          "Invalid segments: 1 addresses and 2 sizes, must be as many");
      assertRefused(() -> kernel.amax(ElementType.BF16, new long[] {64}, new long[] {-1}),
          "Invalid segment 0: size -1 at address 64");
      assertRefused(() -> kernel.amax(ElementType.BF16, new long[] {64, 0}, new long[] {0, 8}),
          "Invalid segment 1: size 8 at address 0");
      assertRefused(() -> encode(kernel, 40, 1, null), "Invalid columns: 40, must be a multiple of 16");
      assertRefused(() -> encode(kernel, 32, Float.NaN, null), "Invalid amax: NaN, must be finite and not negative");
      assertRefused(() -> encode(kernel, 32, -1, null), "Invalid amax: -1.0, must be finite and not negative");
      assertRefused(() -> encode(kernel, 32, 1, new ErrorSums[2]),
          "Invalid error sums: 2 for 1 segments, must be as many");
    }
  }

  private static void encode(Nvfp4Kernel kernel, long cols, float amax, ErrorSums[] sums) {
    NativeMemory memory = NativeMemory.room(256, 0);
    kernel.encode(Nvfp4Recipe.MODELOPT, BlockSearch.RTN, ElementType.BF16, new long[] {memory.address()},
        new long[] {1}, cols, amax, memory.address() + 128, memory.address() + 192, sums);
    throw new AssertionError("was encoded");
  }

  private static void assertRefused(Runnable call, String message) {
    assertThatThrownBy(call::run).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  private static byte[] gaussian(ElementType type, int elements, float deviation) {
    Random random = new Random(elements);
    int[] bits = new int[elements];
    Arrays.setAll(bits, i -> narrow(type, (float) (random.nextGaussian() * deviation)));
    return Unit.bytes(type, bits);
  }

  @Test
  void tiersAreThoseOfTheProcessor() {
    assertThat(Nvfp4Kernels.available()).extracting(Nvfp4Kernel::tier).startsWith("java").isSubsetOf("java", "scalar",
        "avx2", "avx512", "cuda").doesNotHaveDuplicates();
  }
}
