package org.sparkfp4.columnar;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.sql.vectorized.ColumnarBatchRow;
import org.apache.spark.unsafe.types.CalendarInterval;
import org.apache.spark.unsafe.types.GeographyVal;
import org.apache.spark.unsafe.types.GeometryVal;
import org.apache.spark.unsafe.types.UTF8String;
import org.apache.spark.unsafe.types.VariantVal;
import org.sparkfp4.functions.ArrowBytes;

/**
 * A row of a batch of Arrow columns, as a {@code DataWriter} gets it where a write stands directly on a projection on
 * columns. A writer that knows it takes bytes where they lie:
 *
 * <pre>{@code
 * if (row instanceof ArrowRow arrow) {
 *   ColumnVector packed = arrow.batchColumn(2).getChild(0);
 *   ArrowBuf bytes = ArrowRow.bytes(packed, arrow.rowId());
 *   channel.write(bytes.nioBuffer());
 * } else {
 *   stream.write(row.getStruct(2, 5).getBinary(0));
 * }
 * }</pre>
 *
 * <p>Like all rows of Spark's it is valid until the next is read; {@link #copy} gives one that stays.
 */
public final class ArrowRow extends InternalRow {
  private final ColumnarBatch batch;
  private final ColumnarBatchRow row;

  ArrowRow(ColumnarBatch batch) {
    this.batch = batch;
    ColumnVector[] columns = new ColumnVector[batch.numCols()];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = batch.column(i);
    }

    this.row = new ColumnarBatchRow(columns);
  }

  void moveTo(int rowId) {
    row.rowId = rowId;
  }

  /** The row's index in its batch. */
  public int rowId() {
    return row.rowId;
  }

  /** The batch's column of that ordinal; a struct's fields are its children. */
  public ColumnVector batchColumn(int ordinal) {
    return batch.column(ordinal);
  }

  /**
   * A view of one binary value of a column or of a struct's child, see {@link ArrowBytes#of}.
   *
   * @throws IllegalArgumentException if the column has no Arrow binary values or the value is null
   */
  public static ArrowBuf bytes(ColumnVector column, int rowId) {
    return ArrowBytes.of(column, rowId);
  }

  @Override
  public int numFields() {
    return row.numFields();
  }

  @Override
  public InternalRow copy() {
    return row.copy();
  }

  @Override
  public boolean anyNull() {
    return row.anyNull();
  }

  @Override
  public void setNullAt(int ordinal) {
    throw readOnly();
  }

  @Override
  public void update(int ordinal, Object value) {
    throw readOnly();
  }

  @Override
  public boolean isNullAt(int ordinal) {
    return row.isNullAt(ordinal);
  }

  @Override
  public boolean getBoolean(int ordinal) {
    return row.getBoolean(ordinal);
  }

  @Override
  public byte getByte(int ordinal) {
    return row.getByte(ordinal);
  }

  @Override
  public short getShort(int ordinal) {
    return row.getShort(ordinal);
  }

  @Override
  public int getInt(int ordinal) {
    return row.getInt(ordinal);
  }

  @Override
  public long getLong(int ordinal) {
    return row.getLong(ordinal);
  }

  @Override
  public float getFloat(int ordinal) {
    return row.getFloat(ordinal);
  }

  @Override
  public double getDouble(int ordinal) {
    return row.getDouble(ordinal);
  }

  @Override
  public Decimal getDecimal(int ordinal, int precision, int scale) {
    return row.getDecimal(ordinal, precision, scale);
  }

  @Override
  public UTF8String getUTF8String(int ordinal) {
    return row.getUTF8String(ordinal);
  }

  @Override
  public byte[] getBinary(int ordinal) {
    return row.getBinary(ordinal);
  }

  @Override
  public GeographyVal getGeography(int ordinal) {
    return row.getGeography(ordinal);
  }

  @Override
  public GeometryVal getGeometry(int ordinal) {
    return row.getGeometry(ordinal);
  }

  @Override
  public CalendarInterval getInterval(int ordinal) {
    return row.getInterval(ordinal);
  }

  @Override
  public VariantVal getVariant(int ordinal) {
    return row.getVariant(ordinal);
  }

  @Override
  public InternalRow getStruct(int ordinal, int numFields) {
    return row.getStruct(ordinal, numFields);
  }

  @Override
  public ArrayData getArray(int ordinal) {
    return row.getArray(ordinal);
  }

  @Override
  public MapData getMap(int ordinal) {
    return row.getMap(ordinal);
  }

  @Override
  public Object get(int ordinal, DataType dataType) {
    return row.get(ordinal, dataType);
  }

  private static UnsupportedOperationException readOnly() {
    return new UnsupportedOperationException("Cannot change a row of an Arrow batch: copy it first");
  }
}
