package org.sparkfp4.kernels;

/**
 * The C interface as Java sees it; {@code sparkfp4.h} documents it. Only for use once {@link NativeLibrary} has loaded.
 * All kernels return a status of that header, or -1 where the C heap is exhausted.
 */
final class NativeBinding {
  static final int OK = 0;
  static final int INVALID = 1;
  static final int NON_FINITE = 2;
  static final int OUT_OF_MEMORY = -1;

  private NativeBinding() {}

  static native String version();

  static native boolean hasTier(int tier);

  /**
   * @param value takes the amax, or the first element that is not finite
   * @param where takes that element's segment and index
   */
  static native int amax(int tier, int type, long[] addresses, long[] elements, float[] value, long[] where);

  /**
   * @param importance address of the statistics of a weighted search, or 0
   * @param sums takes two a segment, or is null
   * @param value takes the first element that is not finite
   * @param where takes that element's segment and index
   */
  static native int encode(int tier, int recipe, int search, long importance, int type, long[] addresses, long[] rows,
      long cols, float globalScale, long packed, long scales, double[] sums, float[] value, long[] where);

  /**
   * As {@link #amax}, of a quantized source; the scheme is code type, scale type, block rows, block columns.
   *
   * @param value takes the amax, or the first element that is not finite
   * @param where takes that element's segment and index
   */
  static native int quantizedAmax(int tier, int codeType, int scaleType, long blockRows, long blockCols, long[] codes,
      long[] scales, long[] rows, long cols, float[] value, long[] where);

  /** As {@link #encode}, of a quantized source. */
  static native int quantizedEncode(int tier, int recipe, int search, long importance, int codeType, int scaleType,
      long blockRows, long blockCols, long[] codes, long[] scales, long[] rows, long cols, float globalScale,
      long packed, long scalesOut, double[] sums, float[] value, long[] where);

  /**
   * @param value takes the value of the first scale that is refused
   * @param where takes the exponent, or that scale's segment and the index of its first element
   */
  static native int largestExponent(long[] scales, long[] counts, float[] value, long[] where);

  /**
   * {@link #INVALID} where a scale exceeds 2^kmax.
   *
   * @param sums takes two a segment, or is null
   * @param value takes the value of the first scale that is refused
   * @param where takes the blocks that were quantized anew, or that scale's segment and the index of its first element
   */
  static native int castMxfp4(int tier, int recipe, long[] codes, long[] scales, long[] rows, long cols, int kmax,
      long packed, long scalesOut, double[] sums, float[] value, long[] where);

  /**
   * @param value takes the first element that is not finite
   * @param where takes segment 0 and that element's index
   */
  static native int dequantizeToBf16(int tier, int codeType, int scaleType, long blockRows, long blockCols, long codes,
      long scales, long rows, long cols, long out, float[] value, long[] where);

  static native void prefetch(long address, long bytes);

  static native void letGo(long address, long bytes);
}
