package org.sparkfp4.kernels;

/**
 * Memory of the current device of the calling thread.
 *
 * @param scratch address of {@link CudaBinding#scratchBytes} bytes of it
 */
record CudaDeviceMemory(long scratch) implements CudaMemory {
  @Override
  public int run(Call call) {
    return call.at(0, scratch);
  }

  @Override
  public void fill(long address, long bytes, byte value) {
    CudaStatus.check(CudaBinding.fill(address, bytes, value));
  }
}
