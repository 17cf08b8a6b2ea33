package org.sparkfp4.kernels;

/**
 * The C interface as Java sees it; {@code sparkfp4.h} documents it. Only for use once {@link NativeLibrary} has loaded.
 * Both kernels return a status of that header, or -1 where the C heap is exhausted.
 */
final class NativeBinding {
  static final int OK = 0;
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
   * @param sums takes two a segment, or is null
   * @param value takes the first element that is not finite
   * @param where takes that element's segment and index
   */
  static native int encode(int tier, int recipe, int type, long[] addresses, long[] rows, long cols, float globalScale,
      long packed, long scales, double[] sums, float[] value, long[] where);

  static native void prefetch(long address, long bytes);
}
