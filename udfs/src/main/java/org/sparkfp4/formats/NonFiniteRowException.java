package org.sparkfp4.formats;

/** A value of a row, a token's key for one, is NaN or infinite, so that no scale fits it. */
public final class NonFiniteRowException extends ArithmeticException {
  private final long row;
  private final int element;
  private final float value;
  private final boolean normalised;

  private NonFiniteRowException(long row, int element, float value, boolean normalised) {
    super("Invalid value: " + value + " at element " + element + " of row " + row
        + (normalised ? " once it is normalised" : "") + ", must be finite");
    this.row = row;
    this.element = element;
    this.value = value;
    this.normalised = normalised;
  }

  /** Refuses a source row that has a value that is not finite. */
  static void check(float[] values, long row) {
    for (int i = 0; i < values.length; i++) {
      if (!Float.isFinite(values[i])) {
        throw new NonFiniteRowException(row, i, values[i], false);
      }
    }
  }

  /** The error of a row that was finite before it was normalised or rotated. */
  static NonFiniteRowException normalised(float[] values, long row) {
    int element = 0;
    while (Float.isFinite(values[element])) {
      element++;
    }

    return new NonFiniteRowException(row, element, values[element], true);
  }

  /** Index of the row, from 0, within the call. */
  public long row() {
    return row;
  }

  /** Index of the element within the row. */
  public int element() {
    return element;
  }

  public float value() {
    return value;
  }

  /** Whether the source itself was finite: its norm overflows. */
  public boolean isNormalised() {
    return normalised;
  }

  /** The same of a row that another call counts from elsewhere. */
  public NonFiniteRowException at(long otherRow) {
    return new NonFiniteRowException(otherRow, element, value, normalised);
  }
}
