package org.sparkfp4.functions;

import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A value of nvfp4_quantize, comparable. */
public record QuantizedRow(
    byte[] packed, byte[] scales, float amax, List<Double> sumSquares, List<Double> squaredErrors, float globalScale,
    List<Long> requantized) {
  /** From a collected row; null for null. */
  public static QuantizedRow of(Row row) {
    return row == null ? null
        : new QuantizedRow(row.getAs(0), row.getAs(1), row.getFloat(2), row.getList(3), row.getList(4),
            row.getFloat(5), row.getList(6));
  }

  /** From the struct that a writer is given. */
  public static QuantizedRow of(InternalRow struct) {
    return new QuantizedRow(struct.getBinary(0), struct.getBinary(1), struct.getFloat(2),
        boxed(struct.getArray(3).toDoubleArray()), boxed(struct.getArray(4).toDoubleArray()), struct.getFloat(5),
        boxed(struct.getArray(6).toLongArray()));
  }

  /** From a UDF's own result: its arrays are Java's. */
  public static QuantizedRow ofCall(Row row) {
    return row == null ? null
        : new QuantizedRow(row.getAs(0), row.getAs(1), row.getFloat(2), boxed(row.<double[]>getAs(3)),
            boxed(row.<double[]>getAs(4)), row.getFloat(5), boxed(row.<long[]>getAs(6)));
  }

  /** From a column of structs; null for null. */
  public static QuantizedRow of(ColumnVector column, int row) {
    return column.isNullAt(row) ? null : of(column.getStruct(row));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof QuantizedRow that
        && Arrays.equals(packed, that.packed)
        && Arrays.equals(scales, that.scales)
        && Float.floatToRawIntBits(amax) == Float.floatToRawIntBits(that.amax)
        && sumSquares.equals(that.sumSquares)
        && squaredErrors.equals(that.squaredErrors)
        && globalScale == that.globalScale
        && requantized.equals(that.requantized);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(packed);
  }

  @Override
  public String toString() {
    HexFormat hex = HexFormat.of();
    return hex.formatHex(packed) + " " + hex.formatHex(scales) + " " + amax + " " + sumSquares + " " + squaredErrors
        + " " + globalScale + " " + requantized;
  }

  private static List<Double> boxed(double[] values) {
    return Arrays.stream(values).boxed().toList();
  }

  private static List<Long> boxed(long[] values) {
    return Arrays.stream(values).boxed().toList();
  }
}
