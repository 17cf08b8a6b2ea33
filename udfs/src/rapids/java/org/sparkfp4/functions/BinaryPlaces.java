package org.sparkfp4.functions;

/**
 * Where the values of a column of binary values lie in its data, by its offsets and validity as the host has copied them.
 * Offsets may begin anywhere: a slice of a column shares its data. What a null row's offsets enclose is no value.
 */
final class BinaryPlaces {
  private final int[] offsets;
  private final byte[] validity;

  /**
   * @param offsets rows + 1 of them
   * @param validity a bit a row, the least significant first; null where no row is null
   * @param dataBytes bytes of the column's data
   * @throws IllegalStateException if the offsets do not rise, or leave the data: then it is not what cuDF says it is
   */
  BinaryPlaces(int[] offsets, byte[] validity, long dataBytes) {
    this.offsets = offsets;
    this.validity = validity;
    for (int row = 0; row < rows(); row++) {
      if (offsets[row] < 0 || offsets[row] > offsets[row + 1]) {
        throw new IllegalStateException("Cannot read a binary column of " + rows() + " rows: its row " + row
            + " is from byte " + offsets[row] + " to byte " + offsets[row + 1]);
      }
    }

    if (offsets[rows()] > dataBytes) {
      throw new IllegalStateException("Cannot read a binary column of " + rows() + " rows: they end at byte "
          + offsets[rows()] + " of " + dataBytes);
    }

    if (validity != null && validity.length < (rows() + 7) / 8) {
      throw new IllegalStateException("Cannot read a binary column of " + rows() + " rows: it has " + validity.length
          + " bytes of validity");
    }
  }

  /**
   * Refuses offsets that are not a column's own: of a view, where a row is cannot be told.
   *
   * @param bytes of the offsets that the column has
   */
  static void requireOwnOffsets(int rows, long bytes) {
    if (bytes != (rows + 1L) * Integer.BYTES) {
      throw new IllegalStateException("Cannot read a binary column of " + rows + " rows: it has " + bytes
          + " bytes of offsets, so it is a view of another column");
    }
  }

  private int rows() {
    return offsets.length - 1;
  }

  boolean isNull(int row) {
    return validity != null && (validity[row / 8] >> row % 8 & 1) == 0;
  }

  /** The value's first byte in the data. */
  int start(int row) {
    return offsets[row];
  }

  int bytes(int row) {
    return offsets[row + 1] - offsets[row];
  }
}
