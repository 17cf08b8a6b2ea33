package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatNoException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/** What the host makes of a column's offsets and validity; needs no GPU. */
class BinaryPlacesTest {
  @Test
  void sliceOfAColumnBeginsWithinItsData() {
    BinaryPlaces places = new BinaryPlaces(new int[] {40, 48, 48, 51}, null, 60);

    assertThat(new int[] {places.start(0), places.start(1), places.start(2)}).containsExactly(40, 48, 48);
    assertThat(new int[] {places.bytes(0), places.bytes(1), places.bytes(2)}).containsExactly(8, 0, 3);
    assertThat(places.isNull(0)).isFalse();
  }

  @Test
  void validityIsABitARowFromTheLeastSignificantOn() {
    int[] offsets = new int[12];
    BinaryPlaces places = new BinaryPlaces(offsets, new byte[] {(byte) 0b1000_0101, 0b0000_0110, 0, 0}, 0);

    boolean[] nulls = new boolean[11];
    for (int row = 0; row < nulls.length; row++) {
      nulls[row] = places.isNull(row);
    }

    assertThat(nulls)
        .containsExactly(false, true, false, true, true, true, true, false, true, false, false);
  }

  @Test
  void columnWithoutRowsHasNoPlaces() {
    assertThatNoException().isThrownBy(() -> new BinaryPlaces(new int[1], null, 0));
    assertThatNoException().isThrownBy(() -> new BinaryPlaces(new int[1], new byte[64], 0));
  }

  @Test
  void offsetsThatCannotBeAreRefused() {
    assertRefused(new int[] {0, 8, 7}, null, 8,
        "Cannot read a binary column of 2 rows: its row 1 is from byte 8 to byte 7");
    assertRefused(new int[] {-1, 8}, null, 8, "Cannot read a binary column of 1 rows: its row 0 is from byte -1 to byte 8");
    assertRefused(new int[] {0, 8, 16}, null, 15, "Cannot read a binary column of 2 rows: they end at byte 16 of 15");
    assertRefused(new int[10], new byte[1], 0, "Cannot read a binary column of 9 rows: it has 1 bytes of validity");
  }

  @Test
  void offsetsOfAnotherColumnAreRefused() {
    assertThatNoException().isThrownBy(() -> BinaryPlaces.requireOwnOffsets(3, 16));
    assertThatThrownBy(() -> BinaryPlaces.requireOwnOffsets(3, 44)).isInstanceOf(IllegalStateException.class)
        .hasMessage("Cannot read a binary column of 3 rows: it has 44 bytes of offsets, so it is a view of another column");
  }

  private static void assertRefused(int[] offsets, byte[] validity, long dataBytes, String message) {
    assertThatThrownBy(() -> new BinaryPlaces(offsets, validity, dataBytes)).isInstanceOf(IllegalStateException.class)
        .hasMessage(message);
  }
}
