package org.sparkfp4.functions;

import java.util.List;
import java.util.function.LongFunction;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BitVectorHelper;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;

/** A binary column of a result, written by a kernel: its buffers are used again from batch to batch. */
final class BinaryResult implements AutoCloseable {
  private static final long OFFSET_BYTES = VarBinaryVector.OFFSET_WIDTH;

  private final String name;
  private final ReusedBuffer validities;
  private final ReusedBuffer offsetBuffers;
  private final ReusedBuffer dataBuffers;
  private ArrowBuf validity;
  private ArrowBuf offsets;
  private ArrowBuf data;
  private int rows;
  private int nulls;
  private long end;

  /**
   * @param name for messages
   * @param data gives buffers of at least so many bytes for the values themselves
   */
  BinaryResult(String name, BufferAllocator allocator, LongFunction<ArrowBuf> data) {
    this.name = name;
    this.validities = new ReusedBuffer(allocator::buffer);
    this.offsetBuffers = new ReusedBuffer(allocator::buffer);
    this.dataBuffers = new ReusedBuffer(data);
  }

  /**
   * Begins a batch.
   *
   * @param rowCount rows that will be appended
   * @param bytes bytes of all of them
   * @throws IllegalArgumentException if a column cannot hold so many bytes
   */
  void begin(int rowCount, long bytes) {
    if (bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException(
          "Cannot write " + bytes + " bytes of " + name + " for one batch of " + rowCount + " rows, the limit is "
              + Integer.MAX_VALUE + ": read with fewer or smaller rows a batch");
    }

    long validityBytes = (rowCount + 7L) / 8;
    validity = validities.atLeast(Math.max(1, validityBytes));
    validity.setZero(0, validityBytes);
    offsets = offsetBuffers.atLeast((rowCount + 1) * OFFSET_BYTES);
    offsets.setInt(0, 0);
    data = dataBuffers.atLeast(Math.max(1, bytes));
    rows = 0;
    nulls = 0;
    end = 0;
  }

  /** Appends a value of so many bytes; returns the address where they must be written. */
  long append(long bytes) {
    long address = data.memoryAddress() + end;
    end += bytes;
    BitVectorHelper.setBit(validity, rows);
    endRow();
    return address;
  }

  void appendNull() {
    nulls++;
    endRow();
  }

  /** Makes the batch the content of a vector, which takes references of its own. */
  void load(VarBinaryVector vector) {
    vector.loadFieldBuffers(new ArrowFieldNode(rows, nulls), List.of(validity, offsets, data.slice(0, end)));
  }

  @Override
  public void close() {
    validities.close();
    offsetBuffers.close();
    dataBuffers.close();
  }

  private void endRow() {
    rows++;
    offsets.setInt(rows * OFFSET_BYTES, (int) end);
  }
}
