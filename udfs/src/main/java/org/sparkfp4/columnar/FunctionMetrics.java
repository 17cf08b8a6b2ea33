package org.sparkfp4.columnar;

import java.io.Serializable;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.sparkfp4.metrics.ProcessCounter;

/**
 * What the functions of a projection count.
 *
 * @param nanos time in them
 * @param argumentBytes bytes of the columns that they read
 * @param resultBytes bytes of those that they made
 */
record FunctionMetrics(SQLMetric nanos, SQLMetric argumentBytes, SQLMetric resultBytes) implements Serializable {
  void add(long time, ColumnVector[] arguments, ColumnVector result) {
    long read = 0;
    for (ColumnVector argument : arguments) {
      read += bytes(argument);
    }

    long made = bytes(result);
    nanos.add(time);
    argumentBytes.add(read);
    resultBytes.add(made);
    ProcessCounter.FUNCTION_BATCHES.add(1);
    ProcessCounter.FUNCTION_NANOS.add(time);
    ProcessCounter.FUNCTION_RESULT_BYTES.add(made);
  }

  /** 0 of a column that is not Arrow's: a literal. */
  private static long bytes(ColumnVector column) {
    return column instanceof ArrowColumnVector arrow ? arrow.getValueVector().getBufferSize() : 0;
  }
}
