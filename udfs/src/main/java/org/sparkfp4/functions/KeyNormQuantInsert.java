package org.sparkfp4.functions;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF11;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.LayerNorm;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.kernels.KernelChoice;

/**
 * {@code mxfp4_k_norm_quant_insert}: LayerNorm, MXFP4 and cache insert of a batch of indexer keys. Tensors are payloads
 * as the safetensors source gives them, little-endian and row-major:
 *
 * <ul>
 *   <li>k [tokens, head_dim] of dtype; null gives a null result
 *   <li>norm_weight, norm_bias [head_dim], of dtype or F32; null: the keys are normalised already
 *   <li>norm_eps: float
 *   <li>slot_mapping: I64, one a token or fewer; see {@link org.sparkfp4.formats.SlotMapping}
 *   <li>kv_cache: U8 [pages, block_size, head_dim / 2 + head_dim / 32]; null: zeros, as many pages as the slots need
 *   <li>topk_indices_buffer: I32 [rows, topk], or null
 * </ul>
 *
 * <p>The result is the cache with the keys in it and the buffer with a row of -1 for each token. Nothing is changed in
 * place: a column has values, no buffers.
 */
public final class KeyNormQuantInsert implements
    UDF11<byte[], String, Integer, byte[], byte[], Float, byte[], byte[], Integer, byte[], Integer, Row> {
  /** A struct of kv_cache and topk_indices, both binary. */
  public static final StructType RETURN_TYPE =
      new StructType().add("kv_cache", DataTypes.BinaryType).add("topk_indices", DataTypes.BinaryType);

  private static final byte[] NONE = {};

  private final LazyKeyKernel kernel;

  /** @param choice of the kernels */
  public KeyNormQuantInsert(KernelChoice choice) {
    this.kernel = new LazyKeyKernel(choice);
  }

  @Override
  public Row call(byte[] k, String dtype, Integer headDim, byte[] normWeight, byte[] normBias, Float normEps,
      byte[] slotMapping, byte[] kvCache, Integer blockSize, byte[] topkBuffer, Integer topk) {
    if (k == null) {
      return null;
    }

    ElementType type = ElementType.of(dtype);
    KeyForm form = form(type, Payload.positive(headDim, "head_dim"), normWeight, normBias, normEps);
    int tokens = Payload.rows(k, (long) form.dim() * type.bytes(), "k");
    byte[] topkIndices = TopkRows.filled(topkBuffer, tokens, topk);
    KeyPage page = new KeyPage(Payload.positive(blockSize, "block_size"), form.dim());
    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      CacheImage cache = CacheImage.of(kvCache == null ? NONE : kvCache, Payload.required(slotMapping, "slot_mapping"),
          page.tokens(), page.bytes(), "kv_cache", scratch);
      kernel.kernel().insert(
          form, type, scratch.copy(k), tokens, cache.slots(), cache.slotCount(), cache.pages());
      return RowFactory.create(cache.bytes(), topkIndices);
    }
  }

  static KeyForm form(ElementType type, int dim, byte[] normWeight, byte[] normBias, Float eps) {
    if (normWeight == null && normBias == null) {
      return KeyForm.plain(dim);
    }

    LayerNorm norm = new LayerNorm(
        Payload.weights(Payload.required(normWeight, "norm_weight"), dim, type, "norm_weight"),
        Payload.weights(Payload.required(normBias, "norm_bias"), dim, type, "norm_bias"),
        Payload.required(eps, "norm_eps"));
    return new KeyForm(dim, norm, false, false, ScaleRule.CEIL);
  }
}
