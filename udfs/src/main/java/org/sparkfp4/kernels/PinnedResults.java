package org.sparkfp4.kernels;

import java.time.Duration;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.ForeignAllocation;

/** Buffers of pinned memory for results: what a task has released serves the next. */
final class PinnedResults {
  private final Spares<PinnedBlock> spares;

  PinnedResults(Duration kept) {
    this.spares = new Spares<>(kept);
  }

  /**
   * A buffer of at least so many bytes, whose content is undefined. It is of ordinary memory where no more can be pinned:
   * results then take one copy more.
   *
   * @param device that the task uses
   */
  ArrowBuf buffer(BufferAllocator allocator, int device, long bytes) {
    PinnedBlock spare = spares.take(block -> block.fits(bytes));
    PinnedBlock block = spare == null ? PinnedBlock.open(device, bytes) : spare;
    return block == null ? allocator.buffer(bytes) : allocator.wrapForeignAllocation(new Lease(block));
  }

  void closeSpares() {
    spares.closeAll();
  }

  /** A block until the last reference to its buffer goes. */
  private final class Lease extends ForeignAllocation {
    private final PinnedBlock block;

    private Lease(PinnedBlock block) {
      super(block.bytes(), block.address());
      this.block = block;
    }

    @Override
    protected void release0() {
      spares.give(block);
    }
  }
}
