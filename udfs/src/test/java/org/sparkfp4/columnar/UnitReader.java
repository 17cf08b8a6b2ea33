package org.sparkfp4.columnar;

import java.nio.charset.StandardCharsets;
import java.util.Iterator;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.sparkfp4.functions.WeightRow;
import org.sparkfp4.functions.WeightVectors;

/** Closes a batch when the next is read, and wipes its payloads first: whoever still reads them shows. */
final class UnitReader implements PartitionReader<ColumnarBatch> {
  private final UnitPartition partition;
  private final Iterator<List<Integer>> batches;
  private final BufferAllocator allocator =
      ArrowUtils.rootAllocator().newChildAllocator("units", 0, Long.MAX_VALUE);
  private ColumnarBatch batch;

  UnitReader(UnitPartition partition) {
    this.partition = partition;
    this.batches = partition.batches().iterator();
  }

  @Override
  public boolean next() {
    closeBatch();
    if (!batches.hasNext()) {
      return false;
    }

    List<Integer> numbers = batches.next();
    List<WeightRow> rows = partition.load(numbers);
    ColumnVector[] columns = new ColumnVector[partition.columns().length];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new ArrowColumnVector(vector(partition.columns()[i], numbers, rows));
    }

    batch = new ColumnarBatch(columns, numbers.size());
    return true;
  }

  @Override
  public ColumnarBatch get() {
    return batch;
  }

  @Override
  public void close() {
    closeBatch();
    allocator.close();
  }

  private FieldVector vector(String column, List<Integer> numbers, List<WeightRow> rows) {
    return switch (column) {
      case "unit" -> ints(numbers);
      case "slab" -> ints(numbers.stream().map(number -> 0).toList());
      case "name" -> names(numbers);
      case "dtype" -> WeightVectors.dtypes(rows, allocator);
      case "cols" -> WeightVectors.cols(rows, allocator);
      case "amax" -> WeightVectors.amaxes(rows, allocator);
      default -> WeightVectors.payload(rows, column.charAt(4) - '0', allocator);
    };
  }

  private IntVector ints(List<Integer> values) {
    IntVector vector = new IntVector("int", allocator);
    vector.allocateNew(values.size());
    for (int i = 0; i < values.size(); i++) {
      vector.set(i, values.get(i));
    }

    vector.setValueCount(values.size());
    return vector;
  }

  private VarCharVector names(List<Integer> numbers) {
    VarCharVector vector = new VarCharVector("name", allocator);
    vector.allocateNew();
    for (int i = 0; i < numbers.size(); i++) {
      vector.setSafe(i, ("experts." + numbers.get(i)).getBytes(StandardCharsets.UTF_8));
    }

    vector.setValueCount(numbers.size());
    return vector;
  }

  private void closeBatch() {
    if (batch == null) {
      return;
    }

    for (int i = 0; i < batch.numCols(); i++) {
      if (((ArrowColumnVector) batch.column(i)).getValueVector() instanceof VarBinaryVector payload) {
        ArrowBuf data = payload.getDataBuffer();
        for (long at = 0; at < data.capacity(); at++) {
          data.setByte(at, 0xFF);
        }
      }
    }

    batch.close();
    batch = null;
  }
}
