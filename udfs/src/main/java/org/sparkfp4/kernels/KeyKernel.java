package org.sparkfp4.kernels;

import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.NonFiniteRowException;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.formats.ScaleRule;

/**
 * One tier of the MXFP4 kernels: indexer keys and queries, and what goes into a cache with them. Thread-safe and
 * stateless; every tier gives the bytes of {@link org.sparkfp4.formats}, bit for bit.
 *
 * <p>Addresses are of native memory, of any alignment, and must stay valid until the call returns. Elements and slots
 * (64-bit integers) are little-endian. All methods throw a {@link NonFiniteRowException} that names the first row with a
 * NaN or infinite value, in the source or once it is normalised; what was written is then not to be used. A size,
 * or a slot that is outside the cache or named twice, is an {@link IllegalArgumentException} before anything is written.
 */
public interface KeyKernel {
  /** {@code java} (the reference), {@code scalar}, {@code avx2}, {@code avx512} or {@code cuda}. */
  String tier();

  /**
   * Encodes a tensor.
   *
   * @param data [rows, cols], cols a multiple of 32
   * @param packed takes [rows, cols / 2]
   * @param scales takes [rows, cols / 32]
   */
  void quantize(ScaleRule rule, ElementType type, long data, long rows, int cols, long packed, long scales);

  /**
   * Inserts keys into pages of {@link org.sparkfp4.formats.KeyPage}'s image.
   *
   * @param keys [tokens, D]
   * @param slots address of slotCount slots, see {@link org.sparkfp4.formats.SlotMapping}
   */
  void insert(KeyForm form, ElementType type, long keys, long tokens, long slots, long slotCount, KeyPages pages);

  /**
   * Encodes queries, see {@link org.sparkfp4.formats.IndexQuery}; a row of the exception is token * heads + head.
   *
   * @param query [tokens, heads, 128]
   * @param weights [tokens, heads]
   * @param packed takes [tokens, paddedHeads, 64]
   * @param scales takes [tokens, paddedHeads] of 4 bytes
   * @param weightsOut takes [tokens, paddedHeads] F32
   */
  void quantizeQuery(ScaleRule rule, ElementType type, long query, ElementType weightType, long weights,
      float weightScale, long tokens, int heads, int paddedHeads, long packed, long scales, long weightsOut);

  /** Normalises [rows, N] to the same type; N is the norm's. */
  void normalise(RmsNorm norm, ElementType type, long data, long rows, long out);

  /**
   * Normalises latents and inserts their entries, see {@link org.sparkfp4.formats.Fp8DsMla}.
   *
   * @param latents [tokens, 512]
   * @param rope [tokens, 64]
   * @param latentsOut takes [tokens, 512]
   * @param slots address of slotCount slots
   */
  void insertLatents(RmsNorm norm, boolean roundToBf16, ElementType type, long latents, long rope, long tokens,
      long latentsOut, long slots, long slotCount, KeyPages pages);
}
