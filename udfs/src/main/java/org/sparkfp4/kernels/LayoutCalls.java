package org.sparkfp4.kernels;

/** The calls of a native library that move tensors between layouts: the processor's and the GPU's have the same. */
interface LayoutCalls {
  String tier();

  /** @param shape see {@link LayoutBinding} */
  int arrangeCodes(int layout, long[] shape, long[] members, long out);

  int restoreCodes(int layout, long[] shape, long arranged, long[] members);

  int arrangeScales(int layout, long[] shape, long[] members, float factor, long out);

  int restoreScales(int layout, long[] shape, long arranged, float factor, long[] members);

  /** @param where takes the index, or -1 */
  int firstAbove(long scales, long count, int limit, long[] where);

  int decode(TensorMemory tensor, int type, long out);

  /** What to throw for a status other than that of success. */
  RuntimeException failure(int status);
}
