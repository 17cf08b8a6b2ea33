package org.sparkfp4.kernels;

import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

/**
 * One tier of the NVFP4 kernels. Thread-safe and stateless; every tier gives the bytes of {@link Nvfp4} and the same
 * error sums, bit for bit.
 *
 * <p>Addresses are of native memory, of any alignment, and must stay valid until the call returns. Sizes may pass 2^31.
 * A segment is a run of consecutive rows of one tensor; the segments of a call belong to one unit and share its scale.
 */
public interface Nvfp4Kernel {
  /** {@code java} (the reference), {@code scalar}, {@code avx2} or {@code avx512}. */
  String tier();

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
  void encode(Nvfp4Recipe recipe, ElementType type, long[] addresses, long[] rows, long cols, float amax,
      long packedAddress, long scalesAddress, ErrorSums[] sums);
}
