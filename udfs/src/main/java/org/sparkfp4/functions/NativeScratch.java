package org.sparkfp4.functions;

import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Native memory for the time of one call: where a kernel finds values that lie on the heap. */
final class NativeScratch implements AutoCloseable {
  private final BufferAllocator allocator;
  private final List<ArrowBuf> buffers = new ArrayList<>();

  NativeScratch(BufferAllocator allocator) {
    this.allocator = allocator;
  }

  BufferAllocator allocator() {
    return allocator;
  }

  ArrowBuf take(long bytes) {
    ArrowBuf buffer = allocator.buffer(bytes);
    buffers.add(buffer);
    return buffer;
  }

  /** The address of a copy of the value. */
  long copy(byte[] value) {
    ArrowBuf buffer = take(value.length);
    buffer.setBytes(0, value);
    return buffer.memoryAddress();
  }

  /** A binary value that is not null where it lies, or a copy: Spark's own vectors and literals are on the heap. */
  ArrowBuf view(ColumnVector column, int row) {
    if (ArrowBytes.canView(column)) {
      return ArrowBytes.of(column, row);
    }

    byte[] value = column.getBinary(row);
    ArrowBuf buffer = take(value.length);
    buffer.setBytes(0, value);
    return buffer.slice(0, value.length);
  }

  @Override
  public void close() {
    buffers.forEach(ArrowBuf::close);
    buffers.clear();
  }
}
