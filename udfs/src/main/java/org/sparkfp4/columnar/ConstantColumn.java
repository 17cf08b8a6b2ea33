package org.sparkfp4.columnar;

import java.util.Set;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.execution.vectorized.ColumnVectorUtils;
import org.apache.spark.sql.execution.vectorized.ConstantColumnVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A literal, the same in every row.
 *
 * @param value in Catalyst's form
 */
record ConstantColumn(Object value, DataType type) implements ColumnSource {
  private static final Set<DataType> TYPES = Set.of(
      DataTypes.BooleanType, DataTypes.ByteType, DataTypes.ShortType, DataTypes.IntegerType, DataTypes.LongType,
      DataTypes.FloatType, DataTypes.DoubleType, DataTypes.StringType, DataTypes.BinaryType, DataTypes.DateType,
      DataTypes.TimestampType);

  /** Whether a column can be made of it. */
  static boolean supports(Literal literal) {
    return literal.value() == null || TYPES.contains(literal.dataType());
  }

  @Override
  public ColumnReader open(BufferAllocator allocator) {
    return this::column;
  }

  /** A new one for every batch: a consumer may close the batch, which wipes a constant's value. */
  private ColumnVector column(ColumnarBatch batch) {
    ConstantColumnVector column = new ConstantColumnVector(batch.numRows(), type);
    InternalRow row = new GenericInternalRow(new Object[] {value});
    ColumnVectorUtils.populate(column, row, 0);
    return column;
  }
}
