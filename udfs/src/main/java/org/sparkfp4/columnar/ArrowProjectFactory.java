package org.sparkfp4.columnar;

import java.util.List;
import org.apache.spark.PartitionEvaluator;
import org.apache.spark.PartitionEvaluatorFactory;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Opens a projection in each task; what it opens is closed when the task ends. */
record ArrowProjectFactory(List<ColumnSource> sources, SQLMetric rows, SQLMetric batches)
    implements PartitionEvaluatorFactory<ColumnarBatch, ColumnarBatch> {
  @Override
  public PartitionEvaluator<ColumnarBatch, ColumnarBatch> createEvaluator() {
    return (partition, inputs) -> {
      TaskMemory memory = TaskMemory.open(TaskContext.get(), "ArrowProject");
      List<ColumnReader> readers =
          sources.stream().map(source -> memory.closedAtEnd(source.open(memory.allocator()))).toList();
      return new ArrowProjectIterator(inputs.head(), readers, rows, batches);
    };
  }
}
