package org.sparkfp4.source;

import org.apache.spark.TaskContext;
import org.apache.spark.broadcast.Broadcast;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.SerializableConfiguration;

/** Opens partitions on executors; columnar only, since Spark itself turns batches to rows where a query needs them. */
final class SlabReaderFactory implements PartitionReaderFactory {
  private final StructType full;
  private final StructType required;
  private final ReadMode mode;
  private final Broadcast<SerializableConfiguration> configuration;

  /** @param configuration broadcast: to read one from its bytes takes a task as long as to read some of its slabs */
  SlabReaderFactory(
      StructType full, StructType required, ReadMode mode, Broadcast<SerializableConfiguration> configuration) {
    this.full = full;
    this.required = required;
    this.mode = mode;
    this.configuration = configuration;
  }

  @Override
  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  @Override
  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    throw new UnsupportedOperationException("Cannot read safetensors by rows: the reader gives batches");
  }

  @Override
  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    TaskContext task = TaskContext.get();
    String name = "safetensors-" + (task == null ? "driver" : "task-" + task.taskAttemptId());
    return new SlabPartitionReader(
        (SlabPartition) partition, full, required, mode, configuration.value().value(), name, Prefetcher.standard());
  }
}
