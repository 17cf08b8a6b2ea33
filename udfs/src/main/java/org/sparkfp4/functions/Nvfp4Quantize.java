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
 * NVFP4 of up to three weight tensors that share one global scale:
 * {@code (data0, data1, data2, scale0, scale1, scale2, scheme, cols, amax, importance)}.
 *
 * <ul>
 *   <li>data0, data1, data2: binary, the members' elements or codes, row-major [rows, cols], little-endian. A null
 *       data1 or data2 is an absent member; a null data0 gives a null result
 *   <li>scale0, scale1, scale2: binary, the scales of the members' rows where the source stores codes; null elsewhere
 *   <li>scheme: string, BF16, F16 or F32 as safetensors names them, or {@link org.sparkfp4.formats.WeightScheme#text}
 *   <li>cols: bigint, a positive multiple of 16, the same of all members
 *   <li>amax: float, the largest |w| where it is known (a tensor cut into slabs); null: it is found over the members
 *   <li>importance: binary, the statistics of the members' common input for a weighted search, binary32 little-endian:
 *       E[x^2] [cols], or E[x x^T] of each block [cols / 16, 16, 16]; its length tells which. Null: the unit is swept
 *       without. Of no use to other searches
 * </ul>
 *
 * <p>The result is {@link #RETURN_TYPE}: packed is [rows, cols / 2] codes a member and scales [rows, cols / 16] E4M3
 * bytes a member, the members' one after the other without padding, linear; amax the one used and global_scale
 * what follows from it, as a checkpoint stores it; sum_squares and squared_error have one element a member
 * ({@link org.sparkfp4.formats.ErrorSums}).
 *
 * <p>MXFP4 is cast exactly where the exponents allow it ({@link org.sparkfp4.formats.Mxfp4}); requantized has, for each
 * member, the blocks of 16 where they do not. Its amax is 2688 * 2^(kmax - 8).
 *
 * <p>A weight that is NaN or infinite is a {@link org.sparkfp4.formats.NonFiniteException} whose segment is the member
 * and whose index is within that member's data. An argument that cannot be is an IllegalArgumentException that names
 * it.
 */
public class Nvfp4Quantize implements
    UDF10<byte[], byte[], byte[], byte[], byte[], byte[], String, Long, Float, byte[], Row>, ArrowUdf {
  /**
   * A struct of packed: binary, scales: binary, amax: float, sum_squares and squared_error: array of double,
   * global_scale: float, requantized: array of bigint.
   */
  public static final StructType RETURN_TYPE = new StructType()
      .add("packed", DataTypes.BinaryType)
      .add("scales", DataTypes.BinaryType)
      .add("amax", DataTypes.FloatType)
      .add("sum_squares", DataTypes.createArrayType(DataTypes.DoubleType))
      .add("squared_error", DataTypes.createArrayType(DataTypes.DoubleType))
      .add("global_scale", DataTypes.FloatType)
      .add("requantized", DataTypes.createArrayType(DataTypes.LongType));

  private final Nvfp4Recipe recipe;
  private final ScaleSearch search;
  private final LazyKernel kernel;

  /**
   * On the CPU.
   *
   * @param recipe whose arithmetic
   * @param search how block scales are chosen
   * @param tier of the kernels, as {@link org.sparkfp4.kernels.Nvfp4Kernels#forTier} takes it: "auto" or a tier's name
   */
  public Nvfp4Quantize(Nvfp4Recipe recipe, ScaleSearch search, String tier) {
    this(recipe, search, KernelChoice.cpu(tier));
  }

  /**
   * On any device but the RAPIDS Accelerator's columns, see {@link Nvfp4Functions#quantize}.
   *
   * @param recipe whose arithmetic
   * @param search how block scales are chosen
   */
  public Nvfp4Quantize(Nvfp4Recipe recipe, ScaleSearch search, KernelChoice kernels) {
    this.recipe = Objects.requireNonNull(recipe, "recipe");
    this.search = Objects.requireNonNull(search, "search");
    this.kernel = new LazyKernel(kernels);
  }

  final Nvfp4Recipe recipe() {
    return recipe;
  }

  final ScaleSearch search() {
    return search;
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
      WeightUnit unit = new WeightUnit(
          Segments.copied(members, scales, scheme, scratch), cols, amax, ImportanceBytes.copied(importance, scratch));
      EncodedBytes bytes = EncodedBytes.of(unit, kernel.kernel(), recipe, search, scratch);
      WeightUnit.Encoded encoded = bytes.encoded();
      return RowFactory.create(bytes.packed(), bytes.scales(), encoded.amax(), encoded.sumSquares(),
          encoded.squaredErrors(), encoded.globalScale(), encoded.requantized());
    }
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new QuantizeEvaluator(recipe, search, kernel.kernel(), allocator);
  }
}
