package org.sparkfp4.verify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Nvfp4Recipe;

/** Two rows of two blocks, worked out by hand; global scale 1, so that a block scale of 1 makes codes their values. */
class AccuracyScanTest {
  private static final float[] FIRST = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.5f, -1, -1.5f, -2, -3, -4, -6, 0.2f};
  private static final float[] CLIPPED = {7, -8, 6, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};

  @Test
  void everyFigure() {
    ByteBuffer weights = ByteBuffer.allocate(64 * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    put(weights, 0, FIRST);
    put(weights, 32, CLIPPED);
    byte[] packed = new byte[32];
    codes(packed, 0, 0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 0);
    codes(packed, 32, 7, 15, 7, 7);
    CodeCounts counts = new CodeCounts();
    // two slabs; 2^-7 is subnormal
    AccuracyScan scan = new AccuracyScan(Nvfp4Recipe.MODELOPT, 1, 2, 32, 1, counts);
    byte[] scales = {0x38, 0x38, 0x38, 0x04};
    for (int row = 0; row < 2; row++) {
      scan.add(row, 1, ElementType.F32, slice(weights, row * 128, 128), slice(ByteBuffer.wrap(packed), row * 16, 16),
          slice(ByteBuffer.wrap(scales), row * 2, 2));
    }

    Accuracy accuracy = scan.accuracy();
    double first = 2 * (0.25 + 1 + 2.25 + 4 + 9 + 16 + 36);
    assertThat(accuracy.elements()).isEqualTo(64);
    assertThat(accuracy.sumSquares()).isEqualTo(first + 0.04 + 49 + 64 + 36 + 25, within(1e-6));
    assertThat(accuracy.squaredError()).isEqualTo(0.04 + 1 + 4 + 1, within(1e-6));
    assertThat(accuracy.decodedSquares()).isEqualTo(first + 4 * 36, within(1e-6));
    assertThat(accuracy.product()).isEqualTo(first + 42 + 48 + 36 + 30, within(1e-6));
    assertThat(accuracy.relativeError()).isEqualTo(Math.sqrt(6.04 / 311.04), within(1e-6));
    assertThat(accuracy.sqnr()).isEqualTo(10 * Math.log10(311.04 / 6.04), within(1e-4));
    assertThat(accuracy.cosine()).isEqualTo(293 / Math.sqrt(311.04 * 281), within(1e-6));
    assertThat(accuracy.zeroCodes()).isEqualTo(2 + 16 + 12 + 16);
    assertThat(accuracy.saturatedCodes()).as("7 and -8; 6 and 5 are not beyond 6").isEqualTo(2);
    assertThat(accuracy.subnormalScales()).isEqualTo(1);
    assertThat(accuracy.subnormalShare()).isEqualTo(0.25);
    assertThat(accuracy.blockRow()).isEqualTo(1);
    assertThat(accuracy.blockCol()).isZero();
    assertThat(accuracy.largestBlockError()).isEqualTo(Math.sqrt(6.0 / 16 / (311.04 / 64)), within(1e-6));
    assertThat(counts.codes()).containsExactly(46, 2, 2, 2, 2, 2, 2, 6);
    assertThat(counts.scales()[0x38]).isEqualTo(3);
  }

  @Test
  void zerosLoseNothing() {
    AccuracyScan scan = new AccuracyScan(Nvfp4Recipe.MODELOPT, 1, 1, 16, 1, new CodeCounts());
    scan.add(0, 1, ElementType.F32, ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN), ByteBuffer.allocate(8),
        ByteBuffer.wrap(new byte[] {0x38}));

    Accuracy accuracy = scan.accuracy();
    assertThat(accuracy.relativeError()).isZero();
    assertThat(accuracy.sqnr()).isEqualTo(Double.POSITIVE_INFINITY);
    assertThat(accuracy.cosine()).isEqualTo(1);
    assertThat(accuracy.largestBlockError()).isZero();
  }

  private static void put(ByteBuffer weights, int from, float[] values) {
    for (int i = 0; i < values.length; i++) {
      weights.putFloat((from + i) * Float.BYTES, values[i]);
    }
  }

  private static void codes(byte[] packed, int from, int... codes) {
    for (int i = 0; i < codes.length; i++) {
      packed[(from + i) / 2] |= (byte) (codes[i] << (i % 2 * 4));
    }
  }

  private static ByteBuffer slice(ByteBuffer bytes, int from, int length) {
    return bytes.slice(from, length).order(ByteOrder.LITTLE_ENDIAN);
  }
}
