package org.sparkfp4.kernels;

import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.CodeLayout;
import org.sparkfp4.formats.ElementType;

/**
 * One tier of the kernels that move quantized tensors between layouts, and that look into them. Thread-safe and
 * stateless; every tier gives the bytes of {@link CodeLayout}, {@link BlockScaleLayout} and {@link
 * org.sparkfp4.formats.NVFP4Tensor}.
 *
 * <p>Addresses are of native memory, of any alignment, and must stay valid until the call returns; sources and results
 * must not overlap. Sizes may pass 2^31. A shape that the layout does not take is an {@link IllegalArgumentException}
 * before anything is read or written.
 */
public interface LayoutKernel {
  /** {@code java} (the reference), {@code scalar}, {@code avx2}, {@code avx512} or {@code cuda}. */
  String tier();

  /**
   * Arranges the codes of a unit, padding included.
   *
   * @param members addresses of {@link Arrangement#memberCodes} bytes each
   * @param out takes {@link CodeLayout#bytes} of the matrix
   */
  void arrangeCodes(CodeLayout layout, Arrangement shape, long[] members, long out);

  /** Takes the codes of a unit out again. */
  void restoreCodes(CodeLayout layout, Arrangement shape, long arranged, long[] members);

  /**
   * Arranges the block scales of a unit, padding included.
   *
   * @param members addresses of {@link Arrangement#memberScales} bytes each
   * @param factor of {@link org.sparkfp4.formats.MarlinScale}; 1 for layouts other than its own
   * @param out takes {@link BlockScaleLayout#bytes} of the matrix
   */
  void arrangeScales(BlockScaleLayout layout, Arrangement shape, long[] members, float factor, long out);

  /** Takes the block scales of a unit out again. */
  void restoreScales(BlockScaleLayout layout, Arrangement shape, long arranged, float factor, long[] members);

  /** The index of the first byte above a limit, or -1; see {@link BlockScaleLayout#firstAbove}. */
  long firstAbove(long scales, long count, int limit);

  /**
   * Decodes a whole tensor, row-major; NaN is the canonical one.
   *
   * @param type F32, or BF16, to which the binary32 values are rounded to nearest even
   * @param out takes an element for each of the tensor's
   */
  void decode(TensorMemory tensor, ElementType type, long out);
}
