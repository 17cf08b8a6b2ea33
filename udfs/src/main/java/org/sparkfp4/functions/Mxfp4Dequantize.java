package org.sparkfp4.functions;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.sparkfp4.formats.Mxfp4Codec;

/** The exact values of an MXFP4 tensor, {@code (packed, scales)}, as a payload of F32; null where either is null. */
public class Mxfp4Dequantize implements UDF2<byte[], byte[], byte[]> {
  /** binary. */
  public static final DataType RETURN_TYPE = DataTypes.BinaryType;

  static final int BYTES_A_SCALE = Mxfp4Codec.BLOCK / 2;

  @Override
  public byte[] call(byte[] packed, byte[] scales) {
    if (packed == null || scales == null) {
      return null;
    }

    int bytes = payloadBytes(packed.length, scales.length);
    float[] values = new float[bytes / Float.BYTES];
    Mxfp4Codec.decode(ByteBuffer.wrap(packed), ByteBuffer.wrap(scales), values);
    ByteBuffer payload = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    payload.asFloatBuffer().put(values);
    return payload.array();
  }

  /**
   * Bytes of the values of so many bytes of codes.
   *
   * @throws IllegalArgumentException if the scales are not as many as belong to the codes, or the values too many for a
   *     payload
   */
  static int payloadBytes(long packed, long scales) {
    return Payload.valueBytes(packed, scales, BYTES_A_SCALE);
  }
}
