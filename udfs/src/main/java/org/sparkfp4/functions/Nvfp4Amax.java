package org.sparkfp4.functions;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.ArrowUtils;

/**
 * The largest |w| of up to three weight tensors: {@code (data0, data1, data2, dtype)}, the arguments of
 * {@link Nvfp4Quantize}. A null data0 gives null; no elements give 0. A weight that is NaN or infinite is a
 * {@link org.sparkfp4.formats.NonFiniteException} whose segment is the member and whose index is within its data.
 */
public final class Nvfp4Amax implements UDF4<byte[], byte[], byte[], String, Float>, ArrowUdf {
  /** float. */
  public static final DataType RETURN_TYPE = DataTypes.FloatType;

  private final LazyKernel kernel;

  /** @param tier of the kernels: "auto" or a tier's name */
  public Nvfp4Amax(String tier) {
    this.kernel = new LazyKernel(tier);
  }

  @Override
  public Float call(byte[] data0, byte[] data1, byte[] data2, String dtype) {
    if (data0 == null) {
      return null;
    }

    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      byte[][] members = {data0, data1, data2};
      Segments segments = Segments.copied(members, dtype, scratch);
      return kernel.kernel().amax(segments.type(), segments.addresses(), segments.elements());
    }
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new AmaxEvaluator(kernel.kernel(), allocator);
  }
}
