package org.sparkfp4.functions;

/**
 * The offsets of a column of binary values that is written row by row, as cuDF has them: rows + 1 of 32 bits. All rows
 * are added before memory is taken for the values.
 */
final class ListOffsets {
  private final String what;
  private final int[] offsets;
  private final boolean[] present;
  private int row;

  /** @param what is written, for messages */
  ListOffsets(String what, int rows) {
    this.what = what;
    this.offsets = new int[rows + 1];
    this.present = new boolean[rows];
  }

  /**
   * Adds the next row, of so many bytes.
   *
   * @throws IllegalArgumentException if a column cannot hold so many
   */
  void add(long bytes) {
    long end = offsets[row] + bytes;
    if (end > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("Cannot write the " + what + " of one batch of " + present.length
          + " rows: they pass " + Integer.MAX_VALUE + " bytes in row " + row
          + ", lower spark.rapids.sql.batchSizeBytes");
    }

    present[row] = true;
    row++;
    offsets[row] = (int) end;
  }

  /** Adds the next row, which has no value. */
  void addNull() {
    row++;
    offsets[row] = offsets[row - 1];
  }

  /** Where a row begins. */
  int start(int index) {
    return offsets[index];
  }

  /** Bytes of all rows so far. */
  int bytes() {
    return offsets[row];
  }

  int[] offsets() {
    return offsets;
  }

  /** Whether a row has a value. */
  boolean[] present() {
    return present;
  }
}
