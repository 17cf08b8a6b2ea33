package org.sparkfp4.kernels;

import java.util.Arrays;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.WeightScheme;

/**
 * One tier of the NVFP4 kernels. Thread-safe and stateless; every tier gives the bytes of {@link Nvfp4} and the same
 * error sums, bit for bit.
 *
 * <p>Addresses are of native memory, of any alignment, and must stay valid until the call returns. Sizes may pass 2^31.
 * A segment is a run of consecutive rows of one tensor; the segments of a call belong to one unit and share its scale.
 */
public interface Nvfp4Kernel {
  /** {@code java} (the reference), {@code scalar}, {@code avx2}, {@code avx512} or {@code cuda}. */
  String tier();

  /**
   * A buffer for large results. Any memory serves, and a kernel may know some that saves a copy.
   *
   * @param allocator that accounts for it
   * @param bytes that it has room for at least; their content is undefined
   */
  default ArrowBuf results(BufferAllocator allocator, long bytes) {
    return allocator.buffer(bytes);
  }

  /**
   * The largest |w| over all segments; 0 where there are no elements.
   *
   * @param type of the little-endian source elements
   * @param addresses of the segments
   * @param elements of the segments, as many as addresses
   * @throws NonFiniteException naming the first NaN or infinite element, in the order of the segments, then of the
   * index
   * @throws IllegalArgumentException if the arrays differ in length or a size is negative
   */
  float amax(ElementType type, long[] addresses, long[] elements);

  /**
   * Encodes segments that share one amax and one number of columns. In both outputs segment 1 follows segment 0 at
   * once. A unit that {@link Nvfp4#isZero is zero} gets codes 0, zero block scales and error sums of 0.
   *
   * @param recipe whose arithmetic
   * @param search how block scales are chosen; the global scale is {@link
   *     org.sparkfp4.formats.ScaleSearch#globalScale} of the amax
   * @param type of the little-endian source elements
   * @param addresses of the segments, each [rows, cols]
   * @param rows of the segments, as many as addresses
   * @param cols a multiple of 16
   * @param amax of the unit, as {@link #amax} gives it over all its segments
   * @param packedAddress takes rows * cols / 2 bytes over all segments, [rows, cols / 2]
   * @param scalesAddress takes rows * cols / 16 bytes over all segments, E4M3, [rows, cols / 16]
   * @param sums a fresh one for each segment, or null to skip that work
   * @throws NonFiniteException as {@link #amax} does; what was written is not to be used
   * @throws IllegalArgumentException if the arrays differ in length, a size is negative, cols is no multiple of 16, or
   *     amax is negative or not finite
   */
  void encode(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows, long cols,
      float amax, long packedAddress, long scalesAddress, ErrorSums[] sums);

  /**
   * Encodes a whole unit whose amax is yet to be found. A kernel that must fetch the sources from elsewhere fetches them
   * once for both. Otherwise as {@link #amax} and {@link #encode(Nvfp4Recipe, BlockSearch, ElementType, long[], long[],
   * long, float, long, long, ErrorSums[])}.
   *
   * @return the amax
   */
  default float encodeUnit(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows,
      long cols, long packed, long scales, ErrorSums[] sums) {
    long[] elements = Arrays.stream(rows).map(count -> Math.multiplyExact(count, cols)).toArray();
    float amax = amax(type, addresses, elements);
    encode(recipe, search, type, addresses, rows, cols, amax, packed, scales, sums);
    return amax;
  }

  /**
   * The largest |w| over all segments of a quantized source; 0 where there are no elements.
   *
   * @param scheme how the segments are stored; a segment begins at a row that is a multiple of its blockRows
   * @param codes addresses of the segments' codes, each {@link WeightScheme#codeBytes} long
   * @param scales addresses of the segments' scales, each {@link WeightScheme#scaleBytes} long
   * @param rows of the segments, as many as addresses
   * @param cols a multiple of 16
   * @throws NonFiniteException naming the first element that is NaN or infinite once it is dequantized, in the order of
   *     the segments, then of the row-major index
   * @throws IllegalArgumentException if the arrays differ in length, a size is negative, or cols is no multiple of 16
   */
  float amax(WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols);

  /**
   * Encodes segments of a quantized source; their dequantized weights are F32 elements. Otherwise as {@link
   * #encode(Nvfp4Recipe, BlockSearch, ElementType, long[], long[], long, float, long, long, ErrorSums[])}.
   *
   * @param scheme how the segments are stored; a segment begins at a row that is a multiple of its blockRows
   * @param codes addresses of the segments' codes, each {@link WeightScheme#codeBytes} long
   * @param scales addresses of the segments' scales, each {@link WeightScheme#scaleBytes} long
   * @param scalesOut takes rows * cols / 16 bytes over all segments, E4M3, [rows, cols / 16]
   */
  void encode(Nvfp4Recipe recipe, BlockSearch search, WeightScheme scheme, long[] codes, long[] scales, long[] rows,
      long cols, float amax, long packed, long scalesOut, ErrorSums[] sums);

  /**
   * Encodes a whole unit of a quantized source whose amax is yet to be found.
   *
   * @return the amax
   */
  default float encodeUnit(Nvfp4Recipe recipe, BlockSearch search, WeightScheme scheme, long[] codes, long[] scales,
      long[] rows, long cols, long packed, long scalesOut, ErrorSums[] sums) {
    float amax = amax(scheme, codes, scales, rows, cols);
    encode(recipe, search, scheme, codes, scales, rows, cols, amax, packed, scalesOut, sums);
    return amax;
  }

  /**
   * The largest exponent k of the scales 2^k of MXFP4 segments; -127 where there are none.
   *
   * @param scales addresses of the segments' E8M0 bytes
   * @param counts of the scales, as many as addresses
   * @throws NonFiniteException naming the first element, 32 times the scale's index, of the first block whose scale is
   *     NaN or above 2^124
   * @throws IllegalArgumentException if the arrays differ in length or a size is negative
   */
  int largestExponent(long[] scales, long[] counts);

  /**
   * Casts segments of an MXFP4 source to NVFP4, as {@link Mxfp4} defines it: exactly where the exponents allow it. No
   * search changes that.
   *
   * @param codes addresses of the segments' codes, each [rows, cols / 2]
   * @param scales addresses of the segments' E8M0 bytes, each [rows, cols / 32]
   * @param rows of the segments, as many as addresses
   * @param cols a multiple of 32
   * @param kmax of the unit, as {@link #largestExponent} gives it over all its segments
   * @param packed takes rows * cols / 2 bytes over all segments
   * @param scalesOut takes rows * cols / 16 bytes over all segments, E4M3
   * @param sums a fresh one for each segment, or null to skip that work
   * @return how many blocks of 16 were out of the exact range and so were quantized anew
   * @throws NonFiniteException as {@link #largestExponent} does; what was written is not to be used
   * @throws IllegalArgumentException if the arrays differ in length, a size is negative, cols is no multiple of 32,
   *     kmax is out of range, or a scale exceeds 2^kmax
   */
  long castMxfp4(Nvfp4Recipe recipe, long[] codes, long[] scales, long[] rows, long cols, int kmax, long packed,
      long scalesOut, ErrorSums[] sums);

  /**
   * Dequantizes a tensor of a quantized source, or some of its rows, to bfloat16: one binary32 product, rounded to
   * nearest even. For tensors that stay unquantized.
   *
   * @param codes address of {@link WeightScheme#codeBytes}
   * @param scales address of {@link WeightScheme#scaleBytes}
   * @param rows that begin at a multiple of the scheme's blockRows
   * @param cols of any number
   * @param out takes 2 * rows * cols bytes
   * @throws NonFiniteException naming the first element that is not finite in bfloat16; the segment is 0
   * @throws IllegalArgumentException if a size is negative
   */
  void dequantizeToBf16(WeightScheme scheme, long codes, long scales, long rows, long cols, long out);
}
