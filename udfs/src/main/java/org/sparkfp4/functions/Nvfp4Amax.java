package org.sparkfp4.functions;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.kernels.Nvfp4Kernel;

/**
 * The largest |w| of up to three weight tensors: {@code (data0, data1, data2, dtype)}, the arguments of
 * {@link Nvfp4Quantize}. A null data0 gives null; no elements give 0; a weight that is NaN or infinite
 * gives NaN or infinity, no error: {@link Nvfp4Quantize} says where it is.
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
      return amax(kernel.kernel(), segments);
    }
  }

  static float amax(Nvfp4Kernel kernel, Segments segments) {
    try {
      return kernel.amax(segments.type(), segments.addresses(), segments.elements());
    } catch (NonFiniteException e) {
      return Math.abs(e.value());
    }
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new AmaxEvaluator(kernel.kernel(), allocator);
  }
}
