package org.sparkfp4.source;

import java.nio.MappedByteBuffer;
import java.util.function.Consumer;
import org.apache.arrow.memory.ForeignAllocation;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.kernels.FaultGuard;
import org.sparkfp4.kernels.NativeLibrary;

/** A mapped range of a file, unmapped when the last reference to its buffer goes and not when a collector runs. */
final class MappedSlab extends ForeignAllocation {
  // also keeps the collector from unmapping it under a reader
  private final MappedByteBuffer mapping;
  private final FaultGuard guard;
  private final Consumer<MappedSlab> released;

  /** {@code released} is told when nobody can read the slab any more, by the thread that gave the last reference. */
  MappedSlab(MappedByteBuffer mapping, Consumer<MappedSlab> released) {
    super(mapping.capacity(), MemoryUtil.getByteBufferAddress(mapping));
    this.mapping = mapping;
    this.guard = FaultGuard.of(MemoryUtil.getByteBufferAddress(mapping), mapping.capacity());
    this.released = released;
  }

  /** Whether the file lost bytes of the range, or they could not be read; asked before it is unmapped. */
  boolean hasFaulted() {
    return guard.hasFaulted();
  }

  @Override
  protected void release0() {
    released.accept(this);
    NativeLibrary.letGo(MemoryUtil.getByteBufferAddress(mapping), mapping.capacity());
    guard.end();
    OffHeapMemory.free(mapping);
  }
}
