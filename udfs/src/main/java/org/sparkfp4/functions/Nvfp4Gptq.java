package org.sparkfp4.functions;

import java.util.Objects;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF10;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.kernels.KernelChoice;

/**
 * NVFP4 of up to three weight tensors by GPTQ, the arguments of {@link Nvfp4Quantize}. The importance may also be a
 * {@link org.sparkfp4.gptq.LayerInputs}, the mean of x x^T [cols, cols] and the held-out one behind it, binary32: its
 * length tells. Then scales are those of a weighted search by the Hessian's blocks, and codes are chosen one column
 * after another so that errors make up for each other; a member whose held-out output error does not fall by that
 * keeps the codes of the search. With any other importance, and for MXFP4, which is cast exactly, it is
 * {@link Nvfp4Quantize} with a weighted search.
 *
 * <p>The result is that of {@link Nvfp4Quantize} with gptq_rows behind it: for each member, its rows if its codes are
 * GPTQ's, else 0. It runs on the CPU alone.
 */
public final class Nvfp4Gptq implements
    UDF10<byte[], byte[], byte[], byte[], byte[], byte[], String, Long, Float, byte[], Row>, ArrowUdf {
  /** {@link Nvfp4Quantize#RETURN_TYPE} and gptq_rows: array of bigint. */
  public static final StructType RETURN_TYPE =
      Nvfp4Quantize.RETURN_TYPE.add("gptq_rows", DataTypes.createArrayType(DataTypes.LongType));

  private final Nvfp4Recipe recipe;
  private final double damping;
  private final LazyKernel kernel;

  /**
   * @param recipe whose arithmetic
   * @param damping what is added to a Hessian's diagonal, in units of its mean
   * @param tier of the kernels, as {@link org.sparkfp4.kernels.Nvfp4Kernels#forTier} takes it: "auto" or a tier's name
   * @throws IllegalArgumentException if damping is not positive
   */
  public Nvfp4Gptq(Nvfp4Recipe recipe, double damping, String tier) {
    if (!(damping > 0 && damping <= 1)) {
      throw new IllegalArgumentException("Invalid damping: " + damping + ", must be above 0 and at most 1");
    }

    this.recipe = Objects.requireNonNull(recipe, "recipe");
    this.damping = damping;
    this.kernel = new LazyKernel(KernelChoice.cpu(tier));
  }

  @Override
  public Row call(byte[] data0, byte[] data1, byte[] data2, byte[] scale0, byte[] scale1, byte[] scale2,
      String scheme, Long cols, Float amax, byte[] importance) {
    if (data0 == null) {
      return null;
    }

    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      byte[][] members = {data0, data1, data2};
      byte[][] scales = {scale0, scale1, scale2};
      WeightUnit unit = GptqUnit.of(
          Segments.copied(members, scales, scheme, scratch), cols, amax, ImportanceBytes.copied(importance, scratch),
          damping, kernel.kernel().tier(), scratch);
      EncodedBytes bytes = EncodedBytes.of(unit, kernel.kernel(), recipe, ScaleSearch.WEIGHTED, scratch);
      WeightUnit.Encoded encoded = bytes.encoded();
      return RowFactory.create(bytes.packed(), bytes.scales(), encoded.amax(), encoded.sumSquares(),
          encoded.squaredErrors(), encoded.globalScale(), encoded.requantized(), encoded.gptqRows());
    }
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new QuantizeEvaluator(recipe, ScaleSearch.WEIGHTED, damping, kernel.kernel(), allocator);
  }
}
