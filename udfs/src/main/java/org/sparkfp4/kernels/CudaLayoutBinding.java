package org.sparkfp4.kernels;

/**
 * The C interface of the layout kernels for GPUs as Java sees it; {@code sparkfp4_cuda_layouts.h} documents it. Only
 * for use once {@link CudaLibrary} has loaded. A call takes a context of {@link CudaBinding}, and host memory; all give
 * a status of that class. Otherwise as {@link LayoutBinding}.
 */
final class CudaLayoutBinding {
  private CudaLayoutBinding() {}

  static native int arrangeCodes(long context, int layout, long[] shape, long[] members, long out);

  static native int restoreCodes(long context, int layout, long[] shape, long arranged, long[] members);

  static native int arrangeScales(long context, int layout, long[] shape, long[] members, float factor, long out);

  static native int restoreScales(long context, int layout, long[] shape, long arranged, float factor, long[] members);

  static native int decode(long context, boolean isActivation, long experts, long rows, long k, long codes, long scales,
      float[] globalScale, int type, long out);
}
