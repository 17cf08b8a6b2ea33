package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF7;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.IndexQuery;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.kernels.KernelChoice;

/**
 * {@code mxfp4_q_quant}: a batch of indexer queries, see {@link IndexQuery}. Arguments: index_q, a payload [tokens,
 * num_heads, 128] of dtype, null gives null; index_weights [tokens, num_heads] of weights_dtype; weight_scale: float;
 * num_heads and padded_num_heads: int.
 */
public final class QueryQuant implements UDF7<byte[], String, byte[], String, Float, Integer, Integer, Row> {
  /** A struct of q_packed [T, P, 64], q_scale I32 [T, P] and weights F32 [T, P], all binary. */
  public static final StructType RETURN_TYPE = new StructType()
      .add("q_packed", DataTypes.BinaryType)
      .add("q_scale", DataTypes.BinaryType)
      .add("weights", DataTypes.BinaryType);

  private final LazyKeyKernel kernel;

  /** @param choice of the kernels */
  public QueryQuant(KernelChoice choice) {
    this.kernel = new LazyKeyKernel(choice);
  }

  @Override
  public Row call(byte[] query, String dtype, byte[] weights, String weightsDtype, Float weightScale, Integer numHeads,
      Integer paddedNumHeads) {
    if (query == null) {
      return null;
    }

    ElementType type = ElementType.of(dtype);
    ElementType weightType = ElementType.of(weightsDtype, "weights_dtype");
    int heads = Payload.positive(numHeads, "num_heads");
    int padded = Payload.positive(paddedNumHeads, "padded_num_heads");
    if (padded < heads) {
      throw new IllegalArgumentException("Invalid padded_num_heads: " + padded + ", must be num_heads, " + heads
          + ", at least");
    }

    int tokens = Payload.rows(query, (long) heads * IndexQuery.DIM * type.bytes(), "index_q");
    Payload.requireBytes(
        Payload.required(weights, "index_weights"), (long) tokens * heads * weightType.bytes(), "index_weights");
    // no overflow: a payload is below 2 GiB, and so its tokens are below 2^23
    long packedBytes = (long) tokens * padded * (IndexQuery.DIM / 2);
    if (packedBytes > Payload.LARGEST) {
      throw new IllegalArgumentException("Invalid padded_num_heads: " + padded + ", queries of " + tokens
          + " tokens have " + packedBytes + " bytes then, must be below 2 GiB");
    }

    int rows = tokens * padded;
    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      byte[] packed = new byte[(int) packedBytes];
      byte[] scales = new byte[rows * Integer.BYTES];
      byte[] scaled = new byte[rows * Float.BYTES];
      ArrowBuf packedOut = scratch.take(packed.length);
      ArrowBuf scalesOut = scratch.take(scales.length);
      ArrowBuf weightsOut = scratch.take(scaled.length);
      kernel.kernel().quantizeQuery(ScaleRule.CEIL, type, scratch.copy(query), weightType, scratch.copy(weights),
          Payload.required(weightScale, "weight_scale"), tokens, heads, padded, packedOut.memoryAddress(),
          scalesOut.memoryAddress(), weightsOut.memoryAddress());
      packedOut.getBytes(0, packed);
      scalesOut.getBytes(0, scales);
      weightsOut.getBytes(0, scaled);
      return RowFactory.create(packed, scales, scaled);
    }
  }
}
