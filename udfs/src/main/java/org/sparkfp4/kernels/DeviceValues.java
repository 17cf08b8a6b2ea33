package org.sparkfp4.kernels;

import org.sparkfp4.formats.Nvfp4Recipe;

/**
 * Values of quantized tensors on the current device of the calling thread, sources and results alike: the bytes of {@link
 * org.sparkfp4.formats.Nvfp4#decode} and {@link org.sparkfp4.formats.Mxfp4Codec#decode}. Calls are enqueued on the
 * thread's per-thread default stream; {@link #finish} waits for them. Addresses may have any alignment.
 */
public final class DeviceValues {
  DeviceValues() {}

  /**
   * Enqueues the values of an NVFP4 tensor.
   *
   * @param codes address of 8 bytes a block of 16
   * @param scales address of an E4M3 byte a block, in the blocks' order
   * @param globalScale as stored, positive and finite
   * @param out address that takes 64 bytes a block, binary32
   */
  public void nvfp4(Nvfp4Recipe recipe, long codes, long scales, long blocks, float globalScale, long out) {
    CudaStatus.check(
        CudaValuesBinding.nvfp4(NativeKernel.code(recipe), codes, scales, blocks, globalScale, out));
  }

  /**
   * Enqueues the values of an MXFP4 tensor.
   *
   * @param codes address of 16 bytes a block of 32
   * @param scales address of an E8M0 byte a block, in the blocks' order
   * @param out address that takes 128 bytes a block, binary32
   */
  public void mxfp4(long codes, long scales, long blocks, long out) {
    CudaStatus.check(CudaValuesBinding.mxfp4(codes, scales, blocks, out));
  }

  /**
   * Waits for what this thread has enqueued.
   *
   * @throws IllegalStateException if it failed; {@link DeviceLostError} where the device cannot be used again
   */
  public void finish() {
    CudaStatus.check(CudaValuesBinding.finish());
  }
}
