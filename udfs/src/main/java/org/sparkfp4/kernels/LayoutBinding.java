package org.sparkfp4.kernels;

/**
 * The C interface of the layout kernels as Java sees it; {@code sparkfp4_layouts.h} documents it. Only for use once
 * {@link NativeLibrary} has loaded. All give a status of {@link NativeBinding}.
 *
 * <p>A shape is {order, rows, padded rows, k, padded k} of an {@link org.sparkfp4.formats.Arrangement}, whose members
 * are as many as there are addresses; orders and layouts are numbered as the enums of {@code formats} are.
 */
final class LayoutBinding {
  private LayoutBinding() {}

  static native int arrangeCodes(int tier, int layout, long[] shape, long[] members, long out);

  static native int restoreCodes(int tier, int layout, long[] shape, long arranged, long[] members);

  static native int arrangeScales(int tier, int layout, long[] shape, long[] members, float factor, long out);

  static native int restoreScales(int tier, int layout, long[] shape, long arranged, float factor, long[] members);

  /** @param where takes the index, or -1 */
  static native int firstAbove(long scales, long count, int limit, long[] where);

  /** @param globalScale one an expert, or null */
  static native int decode(int tier, boolean isActivation, long experts, long rows, long k, long codes, long scales,
      float[] globalScale, int type, long out);
}
