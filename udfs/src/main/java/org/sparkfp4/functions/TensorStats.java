package org.sparkfp4.functions;

import java.nio.ByteBuffer;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.TensorSummary;

/**
 * What the values of a tensor are like: {@code (payload, dtype)}, see {@link TensorSummary}. A null payload gives null;
 * NaN and infinity are counted, no error; a figure that there is not, such as the mean of no values, is null.
 */
public final class TensorStats implements UDF2<byte[], String, Row>, ArrowUdf {
  /**
   * A struct of elements, zeros, nans, infinities: bigint, min, max, amax: float, mean, stddev, kurtosis: double.
   */
  public static final StructType RETURN_TYPE = new StructType()
      .add("elements", DataTypes.LongType)
      .add("zeros", DataTypes.LongType)
      .add("nans", DataTypes.LongType)
      .add("infinities", DataTypes.LongType)
      .add("min", DataTypes.FloatType)
      .add("max", DataTypes.FloatType)
      .add("amax", DataTypes.FloatType)
      .add("mean", DataTypes.DoubleType)
      .add("stddev", DataTypes.DoubleType)
      .add("kurtosis", DataTypes.DoubleType);

  @Override
  public Row call(byte[] payload, String dtype) {
    return payload == null ? null : row(ByteBuffer.wrap(payload), dtype);
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new StructEvaluator(RETURN_TYPE, TensorStats::figures, allocator);
  }

  private static Row figures(ColumnVector[] arguments, int row, NativeScratch scratch) {
    ArrowBuf payload = scratch.view(arguments[0], row);
    return row(payload.nioBuffer(0, Math.toIntExact(payload.capacity())), Payload.text(arguments[1], row));
  }

  private static Row row(ByteBuffer payload, String dtype) {
    TensorSummary summary = TensorSummary.of(ElementType.of(dtype), payload);
    return RowFactory.create(summary.elements(), summary.zeros(), summary.nans(), summary.infinities(),
        orNull(summary.min()), orNull(summary.max()), orNull(summary.amax()), orNull(summary.mean()),
        orNull(summary.deviation()), orNull(summary.kurtosis()));
  }

  private static Float orNull(float value) {
    return Float.isNaN(value) ? null : value;
  }

  private static Double orNull(double value) {
    return Double.isNaN(value) ? null : value;
  }
}
