package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4Recipe;

/** The cast of MXFP4 by every tier that this machine has against the reference. */
class Mxfp4CastTest {
  private static final int BIAS = 127;

  @ParameterizedTest
  @CsvSource({"1, 32", "3, 96", "40, 288", "7, 4096", "513, 32", "129, 160"})
  void shapes(int rows, int cols) {
    Random random = new Random(rows);
    unit(cols, segment(rows, cols, random, 110, 120), segment(1 + rows / 2, cols, random, 112, 124),
        segment(0, cols, random, 1, 1)).checkCast();
  }

  @Test
  void noElements() {
    unit(32).checkCast();
    unit(0, new QuantizedUnit.Segment(new byte[0], new byte[0], 2)).checkCast();
  }

  /** On both sides of the exact range's end, alone and in the middle of strips that are copied. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 8, 9, 15, 16, 17, 18, 19, 26, 40, 100})
  void scalesBelowTheLargest(int below) {
    Random random = new Random(below);
    QuantizedUnit.Segment segment = segment(300, 64, random, 118, 118);
    segment.scales()[100] = (byte) (118 - below);
    segment.scales()[599] = (byte) (118 - below);
    QuantizedUnit unit = unit(64, segment);
    unit.checkCast();
    unit.checkCast(118 - BIAS + 2);

    Arrays.fill(segment.scales(), (byte) (118 - below));
    unit(64, segment).checkCast(118 - BIAS);
  }

  /** Every scale under every largest one: exact, out of range, and beside zero bytes. */
  @Test
  void everyScaleUnderManyLargest() {
    Random random = new Random(1);
    for (int largest = 1; largest <= 251; largest += largest < 30 || largest > 230 ? 1 : 9) {
      byte[] scales = new byte[largest + 1];
      for (int scale = 0; scale <= largest; scale++) {
        scales[scale] = (byte) scale;
      }

      byte[] codes = QuantizedBytes.randomCodes(CodeType.E2M1, 32 * scales.length, random);
      unit(32, new QuantizedUnit.Segment(codes, scales, scales.length)).checkCast();
    }
  }

  /** Where the sums of squares leave the range in which none of them rounds. */
  @ParameterizedTest
  @ValueSource(ints = {20, 53, 54, 55, 185, 186, 187, 200, 251})
  void sumsOfTinyAndHugeSquares(int scale) {
    Random random = new Random(scale);
    unit(160, segment(40, 160, random, Math.max(1, scale - 2), scale)).checkCast();
  }

  @Test
  void zeroBlocksAndZeroUnits() {
    Random random = new Random(3);
    QuantizedUnit.Segment zeros = segment(20, 96, random, 0, 0);
    unit(96, zeros).checkCast();
    unit(96, zeros, segment(20, 96, random, 110, 112)).checkCast();
    // below 2^-118 the global scale would be subnormal
    unit(96, segment(20, 96, random, 0, 8)).checkCast();
    unit(96, segment(20, 96, random, 1, 9)).checkCast();
  }

  @Test
  void countsWhatItQuantizesAnew() {
    byte[] scales = {118, 101, 100, 0, 99};
    byte[] codes = QuantizedBytes.randomCodes(CodeType.E2M1, 32 * scales.length, new Random(5));
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      NativeMemory source = NativeMemory.of(codes, 0);
      NativeMemory sourceScales = NativeMemory.of(scales, 0);
      NativeMemory packed = NativeMemory.room(codes.length, 0);
      NativeMemory out = NativeMemory.room(2 * scales.length, 0);
      long requantized = kernel.castMxfp4(Nvfp4Recipe.MODELOPT, new long[] {source.address()},
          new long[] {sourceScales.address()}, new long[] {scales.length}, 32, 118 - BIAS, packed.address(),
          out.address(), null);
      assertThat(requantized).as(kernel.tier()).isEqualTo(4);
      assertThat(Arrays.copyOf(packed.bytes(), 32)).as(kernel.tier()).isEqualTo(Arrays.copyOf(codes, 32));
      assertThat(Arrays.copyOf(out.bytes(), 4)).as(kernel.tier()).containsExactly(0x78, 0x78, 1, 1);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 255, 256, 700, 1199})
  void refusedScaleIsNamed(int place) {
    Random random = new Random(7);
    for (int scale : new int[] {255, 254, 252}) {
      QuantizedUnit.Segment good = segment(400, 96, random, 110, 112);
      QuantizedUnit.Segment bad = segment(400, 96, random, 110, 112);
      bad.scales()[place] = (byte) scale;
      bad.scales()[1199] = (byte) scale;
      unit(96, bad, good).checkCast(0);
      QuantizedUnit.Segment tiny = segment(400, 96, random, 1, 7);
      tiny.scales()[place] = (byte) scale;
      unit(96, tiny).checkCast(-120);
      String message = "Invalid weight: " + (scale == 255 ? "NaN" : "Infinity") + " at element " + 32 * place
          + " of segment 1, must be finite";
      NativeMemory[] scales = {NativeMemory.of(good.scales(), 0), NativeMemory.of(bad.scales(), 0)};
      for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
        assertThatThrownBy(() -> kernel.largestExponent(new long[] {scales[0].address(), scales[1].address()},
            new long[] {1200, 1200})).as(kernel.tier()).isInstanceOf(NonFiniteException.class).hasMessage(message);
      }
    }
  }

  @Test
  void refusesScalesAboveTheLargest() {
    Random random = new Random(9);
    unit(96, segment(40, 96, random, 110, 112)).checkCast(-20);
    unit(96, segment(40, 96, random, 110, 112)).checkCast(-120);
    NativeMemory scales = NativeMemory.of(new byte[] {100}, 0);
    NativeMemory out = NativeMemory.room(64, 0);
    for (Nvfp4Kernel kernel : Nvfp4Kernels.available()) {
      assertRefused(kernel, scales, out, 32, -28, "Invalid exponent: -28, a block has a larger scale than 2^-28; it "
          + "must be the largest of all tensors that share the global scale");
      assertRefused(kernel, scales, out, 32, 125, "Invalid exponent: 125, must be from -127 to 124");
      assertRefused(kernel, scales, out, 48, -27, "Invalid columns: 48, must be a multiple of 32");
    }
  }

  private static void assertRefused(Nvfp4Kernel kernel, NativeMemory scales, NativeMemory out, int cols, int kmax,
      String message) {
    assertThatThrownBy(() -> kernel.castMxfp4(Nvfp4Recipe.MODELOPT, new long[] {out.address()},
        new long[] {scales.address()}, new long[] {1}, cols, kmax, out.address() + 16, out.address() + 32, null))
        .as(kernel.tier()).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  @Test
  void piecesOfTheJavaTier() {
    Random random = new Random(11);
    unit(96, segment(30, 96, random, 100, 112), segment(9, 96, random, 110, 112)).checkCast(new JavaKernel(256));
  }

  private static QuantizedUnit unit(int cols, QuantizedUnit.Segment... segments) {
    return new QuantizedUnit(Mxfp4.SCHEME, cols, segments);
  }

  private static QuantizedUnit.Segment segment(int rows, int cols, Random random, int lowest, int highest) {
    byte[] scales = new byte[rows * cols / 32];
    for (int i = 0; i < scales.length; i++) {
      scales[i] = (byte) (lowest + random.nextInt(highest - lowest + 1));
    }

    return new QuantizedUnit.Segment(QuantizedBytes.randomCodes(CodeType.E2M1, rows * cols, random), scales, rows);
  }
}
