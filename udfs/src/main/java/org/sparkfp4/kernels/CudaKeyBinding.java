package org.sparkfp4.kernels;

/**
 * The C interface of the MXFP4 kernels for GPUs as Java sees it; {@code sparkfp4_cuda_keys.h} documents it. Only for use
 * once {@link CudaLibrary} has loaded. A call takes a context of {@link CudaBinding}, and host memory; all give a status
 * of that class; badRow takes the first row that is not finite.
 */
final class CudaKeyBinding {
  private CudaKeyBinding() {}

  static native int quantize(long context, int rule, int type, long data, long rows, long cols, long packed,
      long scales, long[] badRow);

  /**
   * @param weight of the norm; null, like bias, for none
   * @param slots address of one a token
   */
  static native int insert(long context, int rule, long dim, float[] weight, float[] bias, float eps,
      boolean roundToBf16, boolean hadamard, int type, long keys, long tokens, long slots, long pages, long pageCount,
      long pageTokens, long stride, long[] badRow);

  static native int query(long context, int rule, int type, long query, int weightType, long weights, float weightScale,
      long tokens, long heads, long paddedHeads, long packed, long scales, long weightsOut, long[] badRow);

  static native int normalise(long context, int type, long data, long rows, float[] weight, float eps, long out,
      long[] badRow);

  static native int latents(long context, int type, long latents, long rope, long tokens, float[] weight, float eps,
      boolean roundToBf16, long latentsOut, long slots, long slotCount, long pages, long pageCount, long pageTokens,
      long stride, long[] badRow);
}
