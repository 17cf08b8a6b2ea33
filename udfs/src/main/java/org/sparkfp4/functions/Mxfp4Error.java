package org.sparkfp4.functions;

import java.nio.ByteBuffer;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.api.java.UDF4;
import org.apache.spark.sql.types.StructType;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.kernels.KernelChoice;

/** What MXFP4 would lose of a tensor: {@code (payload, dtype, cols, rule)}, the arguments of {@link Mxfp4Quantize}. */
public final class Mxfp4Error implements UDF4<byte[], String, Long, String, Row> {
  /** That of {@link Nvfp4Error}. */
  public static final StructType RETURN_TYPE = EncodingError.RETURN_TYPE;

  private final Mxfp4Quantize quantize;

  /** @param choice of the kernels */
  public Mxfp4Error(KernelChoice choice) {
    this.quantize = new Mxfp4Quantize(choice);
  }

  @Override
  public Row call(byte[] payload, String dtype, Long cols, String rule) {
    Row encoded = quantize.call(payload, dtype, cols, rule);
    if (encoded == null) {
      return null;
    }

    ErrorSums sums = new ErrorSums();
    Mxfp4Codec.addErrors(ElementType.of(dtype), ByteBuffer.wrap(payload), ByteBuffer.wrap(encoded.<byte[]>getAs(0)),
        ByteBuffer.wrap(encoded.<byte[]>getAs(1)), sums);
    return EncodingError.row(sums);
  }
}
