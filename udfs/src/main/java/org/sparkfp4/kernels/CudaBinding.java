package org.sparkfp4.kernels;

/**
 * The C interface of the CUDA kernels as Java sees it; {@code sparkfp4_cuda.h} documents it. Only for use once {@link
 * CudaLibrary} has loaded.
 *
 * <p>A kernel takes a context and works on host memory, or 0 and a scratch of {@link #scratchBytes}, and works on memory
 * of the current device of the thread; then it waits for the thread's default stream. All give a status of that header,
 * or {@link NativeBinding#OUT_OF_MEMORY} where the C heap is exhausted.
 */
final class CudaBinding {
  static final int OUT_OF_DEVICE_MEMORY = 17;
  static final int STICKY = 18;

  private CudaBinding() {}

  static native String version();

  /** Devices that the kernels can run on; 0 without a driver. */
  static native int deviceCount();

  /** A device's product name. */
  static native String deviceName(int device);

  /** What CUDA said of this thread's last call that failed. */
  static native String error();

  /** @param context takes the context */
  static native int create(int device, long[] context);

  static native void destroy(long context);

  /**
   * Takes pinned memory, which calls on host memory write results to without a copy.
   *
   * @param address takes its address
   */
  static native int pin(int device, long bytes, long[] address);

  static native void unpin(int device, long address);

  /** Bytes of device memory that a call of so many segments needs beside its data, aligned to 16. */
  static native long scratchBytes(int segments);

  /**
   * @param value takes the amax, or the first element that is not finite
   * @param where takes that element's segment and index
   */
  static native int amax(long context, long scratch, int type, long[] addresses, long[] elements, float[] value,
      long[] where);

  /**
   * @param search as {@code sparkfp4_cuda_search} numbers them
   * @param importance address of what a weighted search weighs by, else 0
   * @param sums takes two a segment, or is null
   * @param value takes the first element that is not finite
   * @param where takes that element's segment and index
   */
  static native int encode(long context, long scratch, int recipe, int search, long importance, int type,
      long[] addresses, long[] rows, long cols, float globalScale, long packed, long scales, double[] sums,
      float[] value, long[] where);

  /** {@link #amax} and {@link #encode} in one. */
  static native int encodeUnit(long context, long scratch, int recipe, int search, long importance, int type,
      long[] addresses, long[] rows, long cols, long packed, long scales, double[] sums, float[] value, long[] where);

  /** As {@link #amax}, of a quantized source; the scheme is code type, scale type, block rows, block columns. */
  static native int quantizedAmax(long context, long scratch, int codeType, int scaleType, long blockRows,
      long blockCols, long[] codes, long[] scales, long[] rows, long cols, float[] value, long[] where);

  /** As {@link #encode}, of a quantized source. */
  static native int quantizedEncode(long context, long scratch, int recipe, int search, long importance, int codeType,
      int scaleType, long blockRows, long blockCols, long[] codes, long[] scales, long[] rows, long cols,
      float globalScale, long packed, long scalesOut, double[] sums, float[] value, long[] where);

  /** As {@link #encodeUnit}, of a quantized source. */
  static native int quantizedEncodeUnit(long context, long scratch, int recipe, int search, long importance,
      int codeType, int scaleType, long blockRows, long blockCols, long[] codes, long[] scales, long[] rows, long cols,
      long packed, long scalesOut, double[] sums, float[] value, long[] where);

  /**
   * @param value takes the value of the first scale that is refused
   * @param where takes the exponent, or that scale's segment and the index of its first element
   */
  static native int largestExponent(long context, long scratch, long[] scales, long[] counts, float[] value,
      long[] where);

  /**
   * {@link NativeBinding#INVALID} where a scale exceeds 2^kmax.
   *
   * @param sums takes two a segment, or is null
   * @param value takes the value of the first scale that is refused
   * @param where takes the blocks that were quantized anew, or that scale's segment and the index of its first element
   */
  static native int castMxfp4(long context, long scratch, int recipe, long[] codes, long[] scales, long[] rows,
      long cols, int kmax, long packed, long scalesOut, double[] sums, float[] value, long[] where);

  /**
   * @param value takes the first element that is not finite
   * @param where takes segment 0 and that element's index
   */
  static native int dequantizeToBf16(long context, long scratch, int codeType, int scaleType, long blockRows,
      long blockCols, long codes, long scales, long rows, long cols, long out, float[] value, long[] where);

  /** Sets bytes of the current device's memory. */
  static native int fill(long address, long bytes, byte value);
}
