package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.kernels.KernelChoice;

/**
 * MXFP4 of a tensor: {@code (payload, dtype, cols, rule)}, see {@link Mxfp4Codec}. The result is {@link #RETURN_TYPE}:
 * codes [rows, cols / 2] and scales [rows, cols / 32]. A null payload gives null; a null rule is {@code ceil}.
 */
public final class Mxfp4Quantize implements UDF4<byte[], String, Long, String, Row> {
  /** A struct of packed and scales, both binary. */
  public static final StructType RETURN_TYPE =
      new StructType().add("packed", DataTypes.BinaryType).add("scales", DataTypes.BinaryType);

  private final LazyKeyKernel kernel;

  /** @param choice of the kernels */
  public Mxfp4Quantize(KernelChoice choice) {
    this.kernel = new LazyKeyKernel(choice);
  }

  @Override
  public Row call(byte[] payload, String dtype, Long cols, String rule) {
    if (payload == null) {
      return null;
    }

    ElementType type = ElementType.of(dtype);
    int columns = Payload.columns(cols, Mxfp4Codec.BLOCK);
    int rows = Payload.rows(payload, (long) columns * type.bytes(), "payload");
    try (NativeScratch scratch = new NativeScratch(ArrowUtils.rootAllocator())) {
      byte[] packed = new byte[rows * (columns / 2)];
      byte[] scales = new byte[rows * (columns / Mxfp4Codec.BLOCK)];
      ArrowBuf packedOut = scratch.take(packed.length);
      ArrowBuf scalesOut = scratch.take(scales.length);
      kernel.kernel().quantize(rule == null ? ScaleRule.CEIL : ScaleRule.of(rule), type, scratch.copy(payload), rows,
          columns, packedOut.memoryAddress(), scalesOut.memoryAddress());
      packedOut.getBytes(0, packed);
      scalesOut.getBytes(0, scales);
      return RowFactory.create(packed, scales);
    }
  }
}
