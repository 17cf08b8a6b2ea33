package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.junit.jupiter.api.Test;
import org.sparkfp4.functions.WeightRow;
import org.sparkfp4.functions.WeightVectors;

class ArrowRowTest {
  private final List<WeightRow> rows = List.of(WeightRow.random(2), WeightRow.random(4).withAmax(2f));

  @Test
  void readsAsAnyRowDoes() {
    try (BufferAllocator allocator = new RootAllocator(); ColumnarBatch batch = batch(allocator)) {
      ArrowRow row = new ArrowRow(batch);
      row.moveTo(1);
      assertThat(row.rowId()).isEqualTo(1);
      assertThat(row.numFields()).isEqualTo(10);
      assertThat(row.getBinary(0)).isEqualTo(rows.get(1).members()[0]);
      assertThat(row.isNullAt(2)).isTrue();
      assertThat(row.anyNull()).isTrue();
      assertThat(row.getUTF8String(6)).hasToString(rows.get(1).dtype());
      assertThat(row.getLong(7)).isEqualTo(rows.get(1).cols());
      assertThat(row.getFloat(8)).isEqualTo(2f);
    }
  }

  @Test
  void aCopyOutlivesTheBatch() {
    InternalRow copy;
    try (BufferAllocator allocator = new RootAllocator(); ColumnarBatch batch = batch(allocator)) {
      copy = new ArrowRow(batch).copy();
    }

    assertThat(copy.getBinary(1)).isEqualTo(rows.get(0).members()[1]);
    assertThat(copy.getUTF8String(6)).hasToString(rows.get(0).dtype());
  }

  @Test
  void bytesAreViewsOfTheBatchsMemory() {
    try (BufferAllocator allocator = new RootAllocator(); ColumnarBatch batch = batch(allocator)) {
      ArrowRow row = new ArrowRow(batch);
      long first = ArrowRow.bytes(row.batchColumn(0), 0).memoryAddress();
      long second = ArrowRow.bytes(row.batchColumn(0), 1).memoryAddress();
      assertThat(second - first).isEqualTo(rows.get(0).members()[0].length);
      assertThat(ArrowRow.bytes(row.batchColumn(0), 1).capacity()).isEqualTo(rows.get(1).members()[0].length);
    }
  }

  @Test
  void cannotBeChanged() {
    try (BufferAllocator allocator = new RootAllocator(); ColumnarBatch batch = batch(allocator)) {
      ArrowRow row = new ArrowRow(batch);
      assertThatThrownBy(() -> row.setNullAt(0))
          .isInstanceOf(UnsupportedOperationException.class)
          .hasMessage("Cannot change a row of an Arrow batch: copy it first");
      assertThatThrownBy(() -> row.update(0, null)).isInstanceOf(UnsupportedOperationException.class);
    }
  }

  private ColumnarBatch batch(BufferAllocator allocator) {
    return new ColumnarBatch(WeightVectors.arguments(rows, allocator), rows.size());
  }
}
