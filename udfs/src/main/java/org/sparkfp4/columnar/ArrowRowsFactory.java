package org.sparkfp4.columnar;

import org.apache.spark.PartitionEvaluator;
import org.apache.spark.PartitionEvaluatorFactory;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Walks over a task's batches row by row. */
record ArrowRowsFactory(SQLMetric rows) implements PartitionEvaluatorFactory<ColumnarBatch, InternalRow> {
  @Override
  public PartitionEvaluator<ColumnarBatch, InternalRow> createEvaluator() {
    return (partition, inputs) -> new ArrowRowsIterator(inputs.head(), rows);
  }
}
