package org.sparkfp4.safetensors;

import java.nio.MappedByteBuffer;
import org.apache.arrow.memory.ForeignAllocation;
import org.apache.arrow.memory.util.MemoryUtil;

/** A mapped range of a file, unmapped when the last reference to its buffer goes and not when a collector runs. */
final class MappedSlab extends ForeignAllocation {
  // also keeps the collector from unmapping it under a reader
  private final MappedByteBuffer mapping;

  MappedSlab(MappedByteBuffer mapping) {
    super(mapping.capacity(), MemoryUtil.getByteBufferAddress(mapping));
    this.mapping = mapping;
  }

  @Override
  protected void release0() {
    OffHeapMemory.free(mapping);
  }
}
