package org.sparkfp4.kernels;

/** A context of the CUDA library: pinned memory, streams and device memory on one device. Serves one thread at a time. */
final class CudaContext implements AutoCloseable {
  private final int device;
  private long handle;

  private CudaContext(int device, long handle) {
    this.device = device;
    this.handle = handle;
  }

  static CudaContext open(int device) {
    long[] handle = new long[1];
    CudaStatus.check(CudaBinding.create(device, handle));
    return new CudaContext(device, handle[0]);
  }

  int device() {
    return device;
  }

  /** The status of a call that is given this context. */
  synchronized int run(CudaMemory.Call call) {
    if (handle == 0) {
      throw new IllegalStateException("Cannot run on the GPU: the task that had this context has ended");
    }

    return call.at(handle, 0);
  }

  @Override
  public synchronized void close() {
    CudaBinding.destroy(handle);
    handle = 0;
  }
}
