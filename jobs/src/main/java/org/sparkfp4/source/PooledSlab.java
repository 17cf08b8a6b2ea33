package org.sparkfp4.source;

import java.nio.ByteBuffer;
import org.apache.arrow.memory.ForeignAllocation;
import org.apache.arrow.memory.util.MemoryUtil;

/** Bytes in a buffer of the pool, which gets it back when the last reference goes. */
final class PooledSlab extends ForeignAllocation {
  private final ByteBuffer buffer;
  private final BufferPool pool;

  PooledSlab(ByteBuffer buffer, long length, BufferPool pool) {
    super(length, MemoryUtil.getByteBufferAddress(buffer));
    this.buffer = buffer;
    this.pool = pool;
  }

  @Override
  protected void release0() {
    pool.give(buffer);
  }
}
