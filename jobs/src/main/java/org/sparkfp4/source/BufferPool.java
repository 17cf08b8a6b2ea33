package org.sparkfp4.source;

import java.io.Closeable;
import java.nio.ByteBuffer;
import java.util.Comparator;
import java.util.TreeSet;

/**
 * Off-heap buffers of a task, used again and again: the first touch of fresh memory costs more than reading a cached
 * file. Buffers may be given back by any thread.
 */
final class BufferPool implements Closeable {
  private static final int GRANULE = 1 << 20;
  // a unit's members, and as many again for a batch that is retained
  private static final int MAX_IDLE = 6;

  private final TreeSet<ByteBuffer> idle =
      new TreeSet<>(Comparator.comparingInt(ByteBuffer::capacity).thenComparingInt(System::identityHashCode));
  private boolean closed;

  /** A buffer of at least that size, from its start; its contents are left from before. */
  synchronized ByteBuffer take(int size) {
    for (ByteBuffer buffer : idle) {
      if (buffer.capacity() >= size) {
        idle.remove(buffer);
        return buffer;
      }
    }

    if (!idle.isEmpty()) {
      // all are too small by now: one goes, so that the pool grows in size and not in number
      OffHeapMemory.free(idle.pollFirst());
    }

    long rounded = ((long) size + GRANULE - 1) / GRANULE * GRANULE;
    return ByteBuffer.allocateDirect((int) Math.min(rounded, ByteRange.MAX_LENGTH));
  }

  synchronized void give(ByteBuffer buffer) {
    if (closed || !idle.add(buffer)) {
      OffHeapMemory.free(buffer);
    } else if (idle.size() > MAX_IDLE) {
      OffHeapMemory.free(idle.pollFirst());
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    idle.forEach(OffHeapMemory::free);
    idle.clear();
  }
}
