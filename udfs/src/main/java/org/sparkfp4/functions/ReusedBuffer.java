package org.sparkfp4.functions;

import java.util.ArrayList;
import java.util.List;
import java.util.function.LongFunction;
import org.apache.arrow.memory.ArrowBuf;

/**
 * Memory for the results of one batch after another. The kernel of an operating system hands out large buffers page by
 * page on first touch, which costs more than the work on them; so a buffer is used again as soon as its batch is
 * closed.
 *
 * <p>A buffer is free when the only reference is the one kept here. Where a consumer retains batches, as many buffers
 * come to be used in turn.
 */
final class ReusedBuffer implements AutoCloseable {
  private final LongFunction<ArrowBuf> fresh;
  private final List<ArrowBuf> buffers = new ArrayList<>();

  /** @param fresh gives a buffer of at least so many bytes */
  ReusedBuffer(LongFunction<ArrowBuf> fresh) {
    this.fresh = fresh;
  }

  /** A buffer of at least so many bytes that nobody else sees; what it holds is undefined. It stays owned by this. */
  ArrowBuf atLeast(long bytes) {
    for (ArrowBuf buffer : buffers) {
      if (isFree(buffer) && buffer.capacity() >= bytes) {
        return buffer;
      }
    }

    // Free ones are too small for this batch and would be for the next ones of its kind.
    buffers.removeIf(buffer -> {
      boolean free = isFree(buffer);
      if (free) {
        buffer.close();
      }

      return free;
    });

    ArrowBuf buffer = fresh.apply(bytes);
    buffers.add(buffer);
    return buffer;
  }

  @Override
  public void close() {
    buffers.forEach(ArrowBuf::close);
    buffers.clear();
  }

  private static boolean isFree(ArrowBuf buffer) {
    // A consumer that moved the memory to its own allocator is not counted here; then it is accounted there.
    return buffer.refCnt() == 1 && buffer.getReferenceManager().getAccountedSize() > 0;
  }
}
