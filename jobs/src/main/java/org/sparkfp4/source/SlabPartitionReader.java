package org.sparkfp4.source;

import java.io.IOException;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * Gives the rows of a partition as batches: one row where payloads are read, many where they are not.
 *
 * <p>A batch is valid until the next {@link #next()} or {@link #close()}; whoever needs its buffers longer retains them
 * and releases them before the reader is closed, which fails when anything is outstanding.
 */
final class SlabPartitionReader implements PartitionReader<ColumnarBatch> {
  private static final int ROWS_WITHOUT_PAYLOAD = 4096;

  private final List<SourceRow> rows;
  private final int rowsPerBatch;
  private final Prefetcher prefetcher;
  private final boolean mapsAhead;
  private final BufferAllocator allocator;
  private final SourceInputs inputs;
  private final BatchBuilder builder;
  private final PayloadChecksums checksums;
  private final SourceMetrics metrics = new SourceMetrics();
  private int position;
  private ColumnarBatch current;
  private ColumnarBatch ahead;

  SlabPartitionReader(
      SlabPartition partition,
      StructType full,
      StructType required,
      ReadMode mode,
      Configuration configuration,
      String name,
      Prefetcher prefetcher) {
    this.checksums = new PayloadChecksums(required);
    this.rows = partition.rows();
    this.prefetcher = prefetcher;
    this.allocator = ArrowUtils.rootAllocator().newChildAllocator(name, 0, Long.MAX_VALUE);
    this.inputs = new SourceInputs(partition.files(), mode, configuration, metrics);
    this.builder = new BatchBuilder(full, required, allocator, inputs);
    this.rowsPerBatch = builder.readsPayload() ? 1 : ROWS_WITHOUT_PAYLOAD;
    // buffers are filled at once, there is nothing to announce for them
    this.mapsAhead = builder.readsPayload() && mode == ReadMode.MMAP && prefetcher != Prefetcher.NONE;
  }

  @Override
  public boolean next() throws IOException {
    closeCurrent();
    inputs.requireIntact();
    current = ahead != null ? ahead : build();
    ahead = null;
    if (current == null) {
      inputs.requireUnchanged();
    }

    if (current != null && mapsAhead) {
      ahead = build();
      announce(ahead);
    }

    if (current != null) {
      checksums.fill(current);
    }

    return current != null;
  }

  @Override
  public ColumnarBatch get() {
    return current;
  }

  @Override
  public CustomTaskMetric[] currentMetricsValues() {
    return metrics.values();
  }

  @Override
  public void close() throws IOException {
    try (allocator; inputs) {
      closeCurrent();
      if (ahead != null) {
        ahead.close();
        ahead = null;
      }
    }
  }

  private void closeCurrent() {
    if (current != null) {
      current.close();
      current = null;
    }
  }

  private ColumnarBatch build() throws IOException {
    if (position == rows.size()) {
      return null;
    }

    int end = Math.min(rows.size(), position + rowsPerBatch);
    ColumnarBatch batch = builder.build(rows.subList(position, end));
    metrics.addSlabs(end - position);
    position = end;
    return batch;
  }

  private void announce(ColumnarBatch batch) {
    for (int column = 0; batch != null && column < batch.numCols(); column++) {
      if (((ArrowColumnVector) batch.column(column)).getValueVector() instanceof VarBinaryVector payload
          && !payload.getName().equals(SourceSchema.CHECKSUMS)
          && !payload.isNull(0)
          && payload.getValueLength(0) > 0) {
        prefetcher.willNeed(payload.getDataBufferAddress(), payload.getValueLength(0));
      }
    }
  }
}
