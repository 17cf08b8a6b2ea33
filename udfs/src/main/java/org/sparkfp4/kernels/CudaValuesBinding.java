package org.sparkfp4.kernels;

/**
 * The C interface of payloads on GPUs as Java sees it; {@code sparkfp4_cuda.h} documents it. Only for use once {@link
 * CudaLibrary} has loaded. Addresses are of memory of the thread's current device, and its per-thread default stream
 * does the work; all give a status of {@link CudaBinding}.
 */
final class CudaValuesBinding {
  private CudaValuesBinding() {}

  static native int nvfp4(int recipe, long codes, long scales, long blocks, float globalScale, long out);

  static native int mxfp4(long codes, long scales, long blocks, long out);

  /** Waits for the thread's stream. */
  static native int finish();
}
