package org.sparkfp4.columnar;

import org.apache.arrow.memory.BufferAllocator;

/** A column of the input batch, handed on as it is. */
record InputColumn(int ordinal) implements ColumnSource {
  @Override
  public ColumnReader open(BufferAllocator allocator) {
    return batch -> batch.column(ordinal);
  }
}
