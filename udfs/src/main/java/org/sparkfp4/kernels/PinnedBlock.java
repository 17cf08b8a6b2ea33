package org.sparkfp4.kernels;

/** Pinned memory of the host, which the GPU writes itself. */
final class PinnedBlock implements AutoCloseable {
  private static final long GRANULE = 1 << 20;

  private final int device;
  private final long address;
  private final long bytes;

  private PinnedBlock(int device, long address, long bytes) {
    this.device = device;
    this.address = address;
    this.bytes = bytes;
  }

  /**
   * A block of at least so many bytes; null where no more can be pinned.
   *
   * @param device that the task uses
   * @throws IllegalStateException if the device fails
   */
  static PinnedBlock open(int device, long bytes) {
    long size = (Math.max(1, bytes) + GRANULE - 1) / GRANULE * GRANULE;
    long[] address = new long[1];
    int status = CudaBinding.pin(device, size, address);
    if (status == CudaBinding.OUT_OF_DEVICE_MEMORY) {
      return null;
    }

    CudaStatus.check(status);
    return new PinnedBlock(device, address[0], size);
  }

  /** Whether it has room for so many bytes and would not waste more than as many again. */
  boolean fits(long wanted) {
    return wanted <= bytes && bytes <= 2 * Math.max(wanted, GRANULE);
  }

  long address() {
    return address;
  }

  long bytes() {
    return bytes;
  }

  @Override
  public void close() {
    CudaBinding.unpin(device, address);
  }
}
