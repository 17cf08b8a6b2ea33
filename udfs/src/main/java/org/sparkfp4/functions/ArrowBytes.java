package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.LargeVarBinaryVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Access to a binary value of a column where it lies, without a copy. */
public final class ArrowBytes {
  private ArrowBytes() {}

  /** Whether {@link #of} works on this column: its values are Arrow binary, small or large. */
  public static boolean canView(ColumnVector column) {
    return column instanceof ArrowColumnVector arrow && isBinary(arrow.getValueVector());
  }

  /**
   * A view of one value: {@code memoryAddress()} and {@code capacity()} are the value's. It holds no reference of its
   * own and is valid as long as the column is; retain it through its reference manager to keep it longer.
   *
   * @throws IllegalArgumentException if the column has no Arrow binary values or the value is null
   */
  public static ArrowBuf of(ColumnVector column, int row) {
    if (!canView(column)) {
      throw new IllegalArgumentException(
          "Cannot view bytes of " + column.getClass().getName() + " of type " + column.dataType().sql()
              + ": not an Arrow binary column");
    }

    if (column.isNullAt(row)) {
      throw new IllegalArgumentException("Cannot view bytes of row " + row + ": the value is null");
    }

    ValueVector vector = ((ArrowColumnVector) column).getValueVector();
    if (vector instanceof VarBinaryVector small) {
      long start = small.getStartOffset(row);
      return small.getDataBuffer().slice(start, small.getEndOffset(row) - start);
    }

    LargeVarBinaryVector large = (LargeVarBinaryVector) vector;
    ArrowBuf offsets = large.getOffsetBuffer();
    long start = offsets.getLong((long) row * LargeVarBinaryVector.OFFSET_WIDTH);
    long end = offsets.getLong((row + 1L) * LargeVarBinaryVector.OFFSET_WIDTH);
    return large.getDataBuffer().slice(start, end - start);
  }

  private static boolean isBinary(ValueVector vector) {
    return vector instanceof VarBinaryVector || vector instanceof LargeVarBinaryVector;
  }
}
