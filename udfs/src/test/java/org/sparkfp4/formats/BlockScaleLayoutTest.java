package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.BitSet;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class BlockScaleLayoutTest {
  private final Random random = new Random(6);

  @ParameterizedTest
  @EnumSource(BlockScaleLayout.class)
  void placesAreApartAndFillTheMatrix(BlockScaleLayout layout) {
    for (int[] size : new int[][] {{128, 4}, {256, 12}, {100, 8}}) {
      long rows = layout.rows(size[0]);
      long columns = layout.columns(size[1]);
      BitSet taken = new BitSet();
      for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) {
          taken.set((int) layout.position(row, column, rows, columns));
        }
      }

      assertThat(taken.length()).isEqualTo(taken.cardinality());
      assertThat(taken.cardinality()).isEqualTo((int) layout.bytes(size[0], size[1]));
    }
  }

  /**
   * Shapes that pad rows, columns and both. A byte of a small matrix has a value of its own; a larger one is checked by
   * two matrices, which tell every place from every other.
   */
  @ParameterizedTest
  @CsvSource({"128, 4", "256, 8", "96, 4", "128, 3", "130, 5", "1, 1", "300, 11"})
  void atomsByTheOrderOfTheirShape(int rows, int columns) {
    int rowTiles = (rows + 127) / 128;
    int columnTiles = (columns + 3) / 4;
    for (int shift : new int[] {0, 7}) {
      byte[] source = distinct(rows * columns, shift);
      byte[] expected = new byte[rowTiles * columnTiles * 512];
      int at = 0;
      // [mT, kT, 32, 4, 4]
      for (int m = 0; m < rowTiles; m++) {
        for (int k = 0; k < columnTiles; k++) {
          for (int outer = 0; outer < 32; outer++) {
            for (int inner = 0; inner < 4; inner++) {
              for (int c = 0; c < 4; c++) {
                expected[at++] = at(source, rows, columns, m * 128 + inner * 32 + outer, k * 4 + c);
              }
            }
          }
        }
      }

      assertThat(arranged(BlockScaleLayout.ATOM_128X4, source, rows, columns)).isEqualTo(expected);
    }
  }

  @ParameterizedTest
  @CsvSource({"8, 4", "16, 8", "5, 4", "8, 2", "19, 9"})
  void tilesOf8ByTheOrderOfTheirShape(int rows, int columns) {
    byte[] source = distinct(rows * columns, 0);
    byte[] expected = new byte[(rows + 7) / 8 * ((columns + 3) / 4) * 32];
    int at = 0;
    for (int m = 0; m < rows; m += 8) {
      for (int k = 0; k < columns; k += 4) {
        for (int row = m; row < m + 8; row++) {
          for (int column = k; column < k + 4; column++) {
            expected[at++] = at(source, rows, columns, row, column);
          }
        }
      }
    }

    assertThat(arranged(BlockScaleLayout.ATOM_8X4, source, rows, columns)).isEqualTo(expected);
  }

  /** By vLLM's two permutations: the 64 of a block, transposed as 8 by 8, then the middle two of each four. */
  @Test
  void marlinByItsTwoPermutations() {
    int rows = 192;
    int columns = 5;
    byte[] source = distinct(rows * columns, 3);
    byte[] expected = new byte[source.length];
    int[] fours = {0, 2, 1, 3};
    for (int column = 0; column < columns; column++) {
      for (int n = 0; n < rows; n++) {
        int before = n / 4 * 4 + fours[n % 4];
        int row = before / 64 * 64 + before % 8 * 8 + before % 64 / 8;
        expected[column * rows + n] = source[row * columns + column];
      }
    }

    assertThat(arranged(BlockScaleLayout.MARLIN_E4M3, source, rows, columns)).isEqualTo(expected);
  }

  @ParameterizedTest
  @EnumSource(BlockScaleLayout.class)
  void restoreGivesBackWhatWasArranged(BlockScaleLayout layout) {
    for (RowOrder order : RowOrder.values()) {
      int members = order == RowOrder.PLAIN ? 1 : 2;
      Arrangement shape = new Arrangement(order, members, 40, 64, 112, 128);
      Bytes[] sources = new Bytes[members];
      Bytes[] restored = new Bytes[members];
      byte[][] restoredBytes = new byte[members][(int) shape.memberScales()];
      byte[][] sourceBytes = new byte[members][];
      for (int i = 0; i < members; i++) {
        sourceBytes[i] = scales((int) shape.memberScales());
        sources[i] = Bytes.of(sourceBytes[i]);
        restored[i] = Bytes.of(restoredBytes[i]);
      }

      byte[] arranged = new byte[(int) layout.bytes(shape.matrixRows(), shape.paddedColumns())];
      Arrays.fill(arranged, (byte) 0x5A);
      layout.arrange(shape, sources, 1, Bytes.of(arranged));
      int zeros = 0;
      for (byte b : arranged) {
        zeros += b == 0 ? 1 : 0;
      }

      assertThat(zeros).as("padding").isEqualTo(arranged.length - members * (int) shape.memberScales());
      layout.restore(shape, Bytes.of(arranged), 1, restored);
      assertThat(restoredBytes).isDeepEqualTo(sourceBytes);
    }
  }

  @Test
  void firstScaleThatNoRuntimeTakes() {
    for (int code = 0; code < 256; code++) {
      byte[] scales = {0, 0x38, 0x7E, (byte) code, (byte) 0xFF};
      boolean refused = code > 0x7E;
      assertThat(BlockScaleLayout.firstAbove(Bytes.of(scales), 0x7E)).isEqualTo(refused ? 3 : 4);
      assertThat(refused).isEqualTo(!(E4M3.decode(code) >= 0) || code == 0x80);
    }

    assertThat(BlockScaleLayout.firstAbove(Bytes.of(new byte[] {0, 0x7E}), 0x7E)).isEqualTo(-1);
    assertThat(BlockScaleLayout.firstAbove(Bytes.of(new byte[] {0, 0x70, 0x71}), 0x70)).isEqualTo(2);
  }

  @Test
  void sizesThatDoNotFit() {
    assertThatThrownBy(() -> BlockScaleLayout.BLACKWELL_N128_K64.bytes(128, 6))
        .hasMessage("Invalid columns of block scales: 6, layout BLACKWELL_N128_K64 needs a multiple of 4");
    Arrangement shape = Arrangement.plain(4, 16);
    Bytes[] members = {Bytes.of(new byte[4])};
    Bytes out = Bytes.of(new byte[512]);
    assertThatThrownBy(() -> BlockScaleLayout.ATOM_128X4.arrange(shape, members, 2, out))
        .hasMessage("Invalid factor: 2.0, layout ATOM_128X4 takes 1 alone");
    assertThatThrownBy(() -> BlockScaleLayout.ATOM_128X4.arrange(shape, members, 1, members[0]))
        .hasMessage("Invalid arranged block scales: 4 bytes, must be 512");
    assertThatThrownBy(() -> new Arrangement(RowOrder.PLAIN, 2, 4, 4, 16, 16)).hasMessageContaining("must be from 1 to 1");
    assertThatThrownBy(() -> new Arrangement(RowOrder.INTERLEAVED_64, 2, 4, 96, 16, 16))
        .hasMessage("Invalid padded rows: 96, row order INTERLEAVED_64 needs a multiple of 64");
    assertThatThrownBy(() -> new Arrangement(RowOrder.CONCATENATED, 2, 4, 3, 16, 16))
        .hasMessage("Invalid rows: 4 padded to 3");
    assertThatThrownBy(() -> new Arrangement(RowOrder.CONCATENATED, 2, 4, 4, 24, 32))
        .hasMessage("Invalid columns: 24 padded to 32, must be multiples of 16");
  }

  private byte[] scales(int count) {
    byte[] scales = new byte[count];
    for (int i = 0; i < count; i++) {
      scales[i] = (byte) (1 + random.nextInt(0x7E));
    }

    return scales;
  }

  /** Byte i is bits of i: the lowest, or those from a shift on. Never the 0 of padding for the first. */
  private static byte[] distinct(int count, int shift) {
    byte[] bytes = new byte[count];
    for (int i = 0; i < count; i++) {
      bytes[i] = (byte) (i + 1 >> shift);
    }

    return bytes;
  }

  private static byte at(byte[] source, int rows, int columns, int row, int column) {
    return row < rows && column < columns ? source[row * columns + column] : 0;
  }

  private static byte[] arranged(BlockScaleLayout layout, byte[] source, int rows, int columns) {
    byte[] out = new byte[(int) layout.bytes(rows, columns)];
    Arrays.fill(out, (byte) 0x5A);
    layout.arrange(Arrangement.plain(rows, 16L * columns), new Bytes[] {Bytes.of(source)}, 1, Bytes.of(out));
    return out;
  }
}
