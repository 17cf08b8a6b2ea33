package org.sparkfp4.formats;

/** A weight is NaN or infinite, so that no scale fits its tensor. */
public final class NonFiniteException extends ArithmeticException {
  private final int segment;
  private final long index;
  private final float value;

  /**
   * @param segment which of the call's segments, from 0
   * @param index row-major index of the element within the segment
   * @param value the element, widened
   */
  public NonFiniteException(int segment, long index, float value) {
    super("Invalid weight: " + value + " at element " + index + " of segment " + segment + ", must be finite");
    this.segment = segment;
    this.index = index;
    this.value = value;
  }

  public int segment() {
    return segment;
  }

  public long index() {
    return index;
  }

  public float value() {
    return value;
  }
}
