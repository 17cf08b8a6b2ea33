package org.sparkfp4.columnar;

import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Gives one column of a projected batch, batch after batch, in one task. */
interface ColumnReader extends AutoCloseable {
  /** The column for this batch; valid until {@link #release} or the next call. */
  ColumnVector column(ColumnarBatch batch);

  /** Gives up the last column, if it is not the batch's own. */
  default void release() {}

  @Override
  default void close() {}
}
