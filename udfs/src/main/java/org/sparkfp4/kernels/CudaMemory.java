package org.sparkfp4.kernels;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;

/** Where the memory is that a {@link CudaKernel} is given addresses of, and how its calls reach it. */
interface CudaMemory {
  /** Runs a call and gives its status. */
  int run(Call call);

  void fill(long address, long bytes, byte value);

  /** A buffer of the host that results are best written to, of at least so many bytes, whose content is undefined. */
  default ArrowBuf results(BufferAllocator allocator, long bytes) {
    return allocator.buffer(bytes);
  }

  /** A call of {@link CudaBinding}, still without its place. */
  interface Call {
    int at(long context, long scratch);
  }
}
