package org.sparkfp4.kernels;

/** The calls of a native library that move tensors between layouts: the processor's and the GPU's have the same. */
interface LayoutCalls {
  String tier();

  /** @param shape see {@link LayoutBinding} */
  int arrangeCodes(int layout, long[] shape, long[] members, long out);

  int restoreCodes(int layout, long[] shape, long arranged, long[] members);

  int arrangeScales(int layout, long[] shape, long[] members, float factor, long out);

  int restoreScales(int layout, long[] shape, long arranged, float factor, long[] members);

  /**
   * The processor's, of either: one read of what lies in host memory, and the bus would take longer.
   *
   * @param where takes the index, or -1
   */
  default int firstAbove(long scales, long count, int limit, long[] where) {
    return LayoutBinding.firstAbove(scales, count, limit, where);
  }

  int decode(TensorMemory tensor, int type, long out);

  /** What to throw for a status other than that of success. */
  RuntimeException failure(int status);
}
