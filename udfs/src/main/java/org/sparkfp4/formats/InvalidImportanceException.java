package org.sparkfp4.formats;

/** Statistics that no error can be weighed by. */
public final class InvalidImportanceException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  private final int column;
  private final float value;

  /**
   * @param column the column whose importance it is
   * @param value what it is
   */
  public InvalidImportanceException(int column, float value) {
    super("Invalid importance: " + value + " of column " + column + ", must be finite, and not negative for a square");
    this.column = column;
    this.value = value;
  }

  /** The column whose importance it is. */
  public int column() {
    return column;
  }

  /** What it is. */
  public float value() {
    return value;
  }
}
