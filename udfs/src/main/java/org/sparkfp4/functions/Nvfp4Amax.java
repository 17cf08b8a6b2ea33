package org.sparkfp4.functions;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.api.java.UDF8;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.kernels.Nvfp4Kernel;

/**
 * The largest |w| of up to three weight tensors: {@code (data0, data1, data2, scale0, scale1, scale2, scheme, cols)},
 * the arguments of {@link Nvfp4Quantize}; cols may be null for plain elements. Of MXFP4 it is 2688 * 2^(kmax - 8), kmax
 * being the largest exponent of a scale. A null data0 gives null; no elements give 0; a weight that is NaN or infinite
 * gives NaN or infinity, no error: {@link Nvfp4Quantize} says where it is.
 */
public class Nvfp4Amax implements UDF8<byte[], byte[], byte[], byte[], byte[], byte[], String, Long, Float>,
    ArrowUdf {
  /** float. */
  public static final DataType RETURN_TYPE = DataTypes.FloatType;

  private final LazyKernel kernel;

  /**
   * On the CPU.
   *
   * @param tier of the kernels: "auto" or a tier's name
   */
  public Nvfp4Amax(String tier) {
    this(KernelChoice.cpu(tier));
  }

  /** On any device but the RAPIDS Accelerator's columns, see {@link Nvfp4Functions#amax}. */
  public Nvfp4Amax(KernelChoice kernels) {
    this.kernel = new LazyKernel(kernels);
  }

  @Override
  public Float call(byte[] data0, byte[] data1, byte[] data2, byte[] scale0, byte[] scale1, byte[] scale2,
      String scheme, Long cols) {
    if (data0 == null) {
      return null;
    }

    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      byte[][] members = {data0, data1, data2};
      byte[][] scales = {scale0, scale1, scale2};
      return amax(kernel.kernel(), Segments.copied(members, scales, scheme, scratch), cols);
    }
  }

  static float amax(Nvfp4Kernel kernel, Segments segments, Long cols) {
    try {
      return segments.scheme().isStored()
          ? new WeightUnit(segments, cols, null).amax(kernel)
          : kernel.amax(segments.scheme().plain(), segments.addresses(), segments.elements());
    } catch (NonFiniteException e) {
      return Math.abs(e.value());
    }
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new AmaxEvaluator(kernel.kernel(), allocator);
  }
}
