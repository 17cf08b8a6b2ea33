package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class CodeLayoutTest {
  private final Random random = new Random(5);

  /** Every element has a place of its own, whatever pads. */
  @ParameterizedTest
  @EnumSource(CodeLayout.class)
  void placesAreApartAndFillTheMatrix(CodeLayout layout) {
    for (int[] size : new int[][] {{128, 64}, {256, 192}, {192, 320}, {1, 64}}) {
      long rows = layout.rows(size[0]);
      BitSet taken = new BitSet();
      for (int row = 0; row < rows; row++) {
        for (int column = 0; column < size[1]; column++) {
          taken.set((int) layout.nibble(row, column, rows, size[1]));
        }
      }

      assertThat(taken.length()).isEqualTo(taken.cardinality());
      assertThat(taken.cardinality() / 2).isEqualTo((int) layout.bytes(size[0], size[1]));
    }
  }

  @ParameterizedTest
  @EnumSource(CodeLayout.class)
  void restoreGivesBackWhatWasArranged(CodeLayout layout) {
    for (RowOrder order : RowOrder.values()) {
      int members = order == RowOrder.PLAIN ? 1 : 3;
      Arrangement shape = new Arrangement(order, members, 50, 64, 48, 128);
      byte[][] sources = new byte[members][(int) shape.memberCodes()];
      for (byte[] source : sources) {
        random.nextBytes(source);
      }

      byte[] arranged = new byte[(int) layout.bytes(shape.matrixRows(), shape.paddedK()) + 1];
      Arrays.fill(arranged, (byte) 0x5A);
      layout.arrange(shape, views(sources), Bytes.of(arranged));
      assertThat(arranged[arranged.length - 1]).as("behind the end").isEqualTo((byte) 0x5A);
      assertThat(ones(arranged) - Integer.bitCount(0x5A)).as("bits, none in padding").isEqualTo(ones(sources));
      byte[][] restored = new byte[members][(int) shape.memberCodes()];
      for (byte[] member : restored) {
        Arrays.fill(member, (byte) 0xFF);
      }

      layout.restore(shape, Bytes.of(arranged), views(restored));
      assertThat(restored).isDeepEqualTo(sources);
    }
  }

  /** By the shape that the runtimes declare: [N / 128, K / 64, 128, 32] bytes, written in the order of that shape. */
  @Test
  void blackwellTilesInTheOrderOfTheirShape() {
    int rows = 256;
    int k = 192;
    byte[] source = new byte[rows * k / 2];
    random.nextBytes(source);
    byte[] moe = new byte[source.length];
    byte[] dense = new byte[source.length];
    int at = 0;
    for (int nTile = 0; nTile < rows; nTile += 128) {
      for (int kTile = 0; kTile < k; kTile += 64) {
        for (int n = 0; n < 128; n++) {
          int from = ((nTile + n) * k + kTile) / 2;
          int first = (n / 4) % 2 == 1 ? 16 : 0;
          System.arraycopy(source, from, dense, at, 32);
          System.arraycopy(source, from + first, moe, at, 16);
          System.arraycopy(source, from + 16 - first, moe, at + 16, 16);
          at += 32;
        }
      }
    }

    assertThat(arranged(CodeLayout.BLACKWELL_MOE_N128_K64, source, rows, k)).isEqualTo(moe);
    assertThat(arranged(CodeLayout.BLACKWELL_N128_K64, source, rows, k)).isEqualTo(dense);
  }

  /** By the way that a word is read: which row and column each of its nibbles is. */
  @Test
  void marlinWordsHoldTheElementsThatTheKernelExpects() {
    int rows = 128;
    int k = 48;
    byte[] source = new byte[rows * k / 2];
    random.nextBytes(source);
    byte[] expected = new byte[source.length];
    for (int kTile = 0; kTile < k / 16; kTile++) {
      for (int block = 0; block < rows / 64; block++) {
        for (int w = 0; w < 128; w++) {
          int i = w / 4;
          int j = w % 4;
          int word = 0;
          for (int t = 0; t < 8; t++) {
            int n = 64 * block + 16 * j + i / 4 + 8 * (t % 4 / 2);
            int c = 16 * kTile + 2 * (i % 4) + t / 4 + 8 * (t % 2);
            word |= (source[(n * k + c) / 2] >> 4 * (c % 2) & 0xF) << 4 * t;
          }

          for (int b = 0; b < 4; b++) {
            expected[((kTile * rows / 64 + block) * 128 + w) * 4 + b] = (byte) (word >> 8 * b);
          }
        }
      }
    }

    assertThat(arranged(CodeLayout.MARLIN, source, rows, k)).isEqualTo(expected);
  }

  @Test
  void sizesThatDoNotFit() {
    assertThatThrownBy(() -> CodeLayout.BLACKWELL_MOE_N128_K64.bytes(128, 96))
        .isInstanceOf(IllegalArgumentException.class).hasMessageContaining("[128, 96]").hasMessageContaining("64");
    assertThatThrownBy(() -> CodeLayout.MARLIN.bytes(-1, 16)).hasMessageContaining("[-1, 16]");
    Arrangement shape = Arrangement.plain(4, 16);
    assertThatThrownBy(() -> CodeLayout.ROW_MAJOR.arrange(shape, views(new byte[1][31]), Bytes.of(new byte[32])))
        .hasMessage("Invalid codes: 31 bytes, must be 32");
    assertThatThrownBy(() -> CodeLayout.ROW_MAJOR.arrange(shape, views(new byte[1][32]), Bytes.of(new byte[31])))
        .hasMessage("Invalid arranged codes: 31 bytes, must be 32");
    assertThatThrownBy(() -> CodeLayout.ROW_MAJOR.restore(shape, Bytes.of(new byte[32]), views(new byte[2][32])))
        .hasMessage("Invalid members: 2 buffers for 1");
  }

  private static byte[] arranged(CodeLayout layout, byte[] source, int rows, int k) {
    byte[] out = new byte[source.length];
    layout.arrange(Arrangement.plain(rows, k), new Bytes[] {Bytes.of(source)}, Bytes.of(out));
    return out;
  }

  private static Bytes[] views(byte[][] arrays) {
    return Arrays.stream(arrays).map(Bytes::of).toArray(Bytes[]::new);
  }

  private static int ones(byte[]... arrays) {
    int ones = 0;
    for (byte[] array : arrays) {
      for (byte b : array) {
        ones += Integer.bitCount(b & 0xFF);
      }
    }

    return ones;
  }
}
