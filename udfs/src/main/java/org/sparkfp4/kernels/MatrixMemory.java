package org.sparkfp4.kernels;

import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.util.MemoryUtil;

/**
 * Native memory of matrices, all of it given back by {@link #close}. Native, since a kernel that works on an array of Java
 * holds the garbage collector up: tasks that do so in turns let another's allocation wait until it fails.
 */
public final class MatrixMemory implements AutoCloseable {
  private final BufferAllocator allocator;
  private final List<ArrowBuf> buffers = new ArrayList<>();

  public MatrixMemory(BufferAllocator allocator) {
    this.allocator = allocator;
  }

  /**
   * A matrix of zeros, row by row.
   *
   * @throws ArithmeticException if it has more bytes than an int counts
   */
  public MatrixView matrix(int rows, int cols) {
    int bytes = Math.multiplyExact(Double.BYTES, Math.multiplyExact(rows, cols));
    ArrowBuf buffer = allocator.buffer(Math.max(bytes, Double.BYTES));
    buffers.add(buffer);
    buffer.setZero(0, bytes);
    return new MatrixView(
        MemoryUtil.directBuffer(buffer.memoryAddress(), bytes).order(ByteOrder.nativeOrder()).asDoubleBuffer(), 0, rows,
        cols, cols, 1);
  }

  public BufferAllocator allocator() {
    return allocator;
  }

  /** Gives all back; more may be asked for. */
  @Override
  public void close() {
    buffers.forEach(ArrowBuf::close);
    buffers.clear();
  }
}
