package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF18;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.kernels.KernelChoice;

/**
 * {@code mxfp4_fused_prologue}: what comes before sparse attention, for a batch of tokens: the RMSNorms of q_a and
 * kv_a, the fp8_ds_mla entries, the rows of -1 in the top-k buffer, and the indexer's keys. Tensors are payloads as the
 * safetensors source gives them:
 *
 * <ul>
 *   <li>q_c [tokens, Q], kv_c [tokens, 512], k_pe [tokens, 64], index_k [tokens, D], all of dtype; q_norm_weight,
 *       kv_norm_weight, k_norm_weight, k_norm_bias of dtype or F32. Q and D follow from q_c's and index_k's bytes
 *   <li>eps: float, of all three norms
 *   <li>topk_indices_buffer: I32 [rows, topk], or null
 *   <li>mla_cache: U8 [pages, block_size, 656], mla_slot_mapping: I64; index_cache: U8 [pages, block_size, D / 2 + D /
 *       32], index_slot_mapping: I64. A null cache or mapping: that insert is skipped; an empty cache: zeros, as many
 *       pages as the slots need
 * </ul>
 *
 * <p>A null q_c gives a null result.
 */
public final class FusedPrologue implements
    UDF18<byte[], byte[], byte[], byte[], String, byte[], byte[], byte[], byte[], Float, byte[], Integer, byte[],
        byte[], byte[], byte[], Integer, Integer, Row> {
  /** A struct of q_c_normed, kv_c_normed, topk_indices, mla_cache and index_cache, all binary. */
  public static final StructType RETURN_TYPE = new StructType()
      .add("q_c_normed", DataTypes.BinaryType)
      .add("kv_c_normed", DataTypes.BinaryType)
      .add("topk_indices", DataTypes.BinaryType)
      .add("mla_cache", DataTypes.BinaryType)
      .add("index_cache", DataTypes.BinaryType);

  private static final byte[] NONE = {};

  private final LazyKeyKernel kernel;

  /** @param choice of the kernels */
  public FusedPrologue(KernelChoice choice) {
    this.kernel = new LazyKeyKernel(choice);
  }

  @Override
  public Row call(byte[] queries, byte[] latents, byte[] rope, byte[] keys, String dtype, byte[] queryWeight,
      byte[] latentWeight, byte[] keyWeight, byte[] keyBias, Float eps, byte[] topkBuffer, Integer topk, byte[] mlaCache,
      byte[] mlaSlots, byte[] indexCache, byte[] indexSlots, Integer mlaBlockSize, Integer indexBlockSize) {
    if (queries == null) {
      return null;
    }

    ElementType type = ElementType.of(dtype);
    int tokens = Payload.rows(
        Payload.required(latents, "kv_c"), (long) Fp8DsMla.LATENT * type.bytes(), "kv_c");
    Payload.requireBytes(Payload.required(rope, "k_pe"), (long) tokens * Fp8DsMla.ROPE * type.bytes(), "k_pe");
    float epsilon = Payload.required(eps, "eps");
    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      Batch batch = new Batch(scratch, type, tokens, epsilon);
      byte[] queriesOut = batch.queries(queries, queryWeight);
      byte[] latentsOut = new byte[latents.length];
      byte[] mla = batch.latents(latents, latentsOut, rope, latentWeight, mlaCache, mlaSlots, mlaBlockSize);
      byte[] index = batch.keys(Payload.required(keys, "index_k"), keyWeight, keyBias, indexCache, indexSlots,
          indexBlockSize);
      return RowFactory.create(queriesOut, latentsOut, TopkRows.filled(topkBuffer, tokens, topk), mla, index);
    }
  }

  /** The tokens of one call. */
  private final class Batch {
    private final NativeScratch scratch;
    private final ElementType type;
    private final int tokens;
    private final float eps;

    Batch(NativeScratch scratch, ElementType type, int tokens, float eps) {
      this.scratch = scratch;
      this.type = type;
      this.tokens = tokens;
      this.eps = eps;
    }

    byte[] queries(byte[] queries, byte[] weight) {
      byte[] normalised = new byte[queries.length];
      if (tokens > 0) {
        int cols = columns(queries, "q_c");
        ArrowBuf out = scratch.take(queries.length);
        kernel.kernel().normalise(norm(weight, cols, "q_norm_weight"), type, scratch.copy(queries), tokens,
            out.memoryAddress());
        out.getBytes(0, normalised);
      }

      return normalised;
    }

    byte[] latents(byte[] latents, byte[] latentsOut, byte[] rope, byte[] weight, byte[] cache, byte[] slots,
        Integer blockSize) {
      RmsNorm norm = norm(weight, Fp8DsMla.LATENT, "kv_norm_weight");
      ArrowBuf out = scratch.take(Math.max(1, latents.length));
      boolean skip = cache == null || slots == null;
      int pageTokens = skip ? 1 : Payload.positive(blockSize, "mla_block_size");
      CacheImage image = CacheImage.of(skip ? NONE : cache, skip ? NONE : slots, pageTokens,
          (long) pageTokens * Fp8DsMla.BYTES, "mla_cache", scratch);
      kernel.kernel().insertLatents(norm, false, type, scratch.copy(latents), scratch.copy(rope), tokens,
          out.memoryAddress(), image.slots(), image.slotCount(), image.pages());
      out.getBytes(0, latentsOut);
      return skip ? null : image.bytes();
    }

    byte[] keys(byte[] keys, byte[] weight, byte[] bias, byte[] cache, byte[] slots, Integer blockSize) {
      if (cache == null || slots == null || tokens == 0) {
        return cache == null || slots == null ? null : cache;
      }

      KeyForm form = KeyNormQuantInsert.form(type, columns(keys, "index_k"), weight, bias, eps);
      KeyPage page = new KeyPage(Payload.positive(blockSize, "index_block_size"), form.dim());
      CacheImage image = CacheImage.of(cache, slots, page.tokens(), page.bytes(), "index_cache", scratch);
      kernel.kernel().insert(
          form, type, scratch.copy(keys), tokens, image.slots(), image.slotCount(), image.pages());
      return image.bytes();
    }

    private RmsNorm norm(byte[] weight, int cols, String name) {
      return new RmsNorm(Payload.weights(Payload.required(weight, name), cols, type, name), eps);
    }

    /** Columns of a tensor that has a row for every token. */
    private int columns(byte[] payload, String name) {
      long rowBytes = payload.length / tokens;
      if (rowBytes * tokens != payload.length || rowBytes % type.bytes() != 0) {
        throw new IllegalArgumentException("Invalid " + name + ": " + payload.length + " bytes, must be " + tokens
            + " rows of " + type + ", as kv_c has");
      }

      int cols = (int) (rowBytes / type.bytes());
      Mxfp4Codec.requireColumns(cols);
      return cols;
    }
  }
}
