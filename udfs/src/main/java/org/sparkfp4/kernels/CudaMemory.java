package org.sparkfp4.kernels;

/** Where the memory is that a {@link CudaKernel} is given addresses of, and how its calls reach it. */
interface CudaMemory {
  /** Runs a call and gives its status. */
  int run(Call call);

  void fill(long address, long bytes, byte value);

  /** A call of {@link CudaBinding}, still without its place. */
  interface Call {
    int at(long context, long scratch);
  }
}
