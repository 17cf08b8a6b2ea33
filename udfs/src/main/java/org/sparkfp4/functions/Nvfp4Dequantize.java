package org.sparkfp4.functions;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.api.java.UDF3;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

/**
 * The values of an NVFP4 tensor, {@code (packed, scales, global_scale)}, as a payload of F32: each is
 * {@code e2m1(code) * d}, as {@link Nvfp4#decode} defines it. Null where an argument is null.
 */
public class Nvfp4Dequantize implements UDF3<byte[], byte[], Float, byte[]>, ArrowUdf {
  /** binary. */
  public static final DataType RETURN_TYPE = DataTypes.BinaryType;

  static final int BYTES_A_SCALE = Nvfp4.BLOCK / 2;

  private final Nvfp4Recipe recipe;

  /** @param recipe whose global scale it is: one that multiplies or one that divides */
  public Nvfp4Dequantize(Nvfp4Recipe recipe) {
    this.recipe = recipe;
  }

  @Override
  public byte[] call(byte[] packed, byte[] scales, Float globalScale) {
    if (packed == null || scales == null || globalScale == null) {
      return null;
    }

    ByteBuffer payload = ByteBuffer.allocate(payloadBytes(packed.length, scales.length, globalScale));
    decode(ByteBuffer.wrap(packed), ByteBuffer.wrap(scales), globalScale, payload);
    return payload.array();
  }

  final Nvfp4Recipe recipe() {
    return recipe;
  }

  @Override
  public ArrowEvaluator open(BufferAllocator allocator) {
    return new DequantizeEvaluator(this, allocator);
  }

  /**
   * Bytes of the values of so many bytes of codes.
   *
   * @throws IllegalArgumentException if the scales are not as many as belong to the codes, the values too many for a
   *     payload, or the global scale cannot be
   */
  static int payloadBytes(long packed, long scales, float globalScale) {
    int bytes = Payload.valueBytes(packed, scales, BYTES_A_SCALE);
    Nvfp4.requireGlobalScale(globalScale);
    return bytes;
  }

  void decode(ArrowBuf packed, ArrowBuf scales, float globalScale, ByteBuffer payload) {
    decode(packed.nioBuffer(0, Math.toIntExact(packed.capacity())),
        scales.nioBuffer(0, Math.toIntExact(scales.capacity())), globalScale, payload);
  }

  /** Rows are whole blocks without padding, so all of them are decoded as one. */
  private void decode(ByteBuffer packed, ByteBuffer scales, float globalScale, ByteBuffer payload) {
    Nvfp4.decode(recipe, packed, scales, 1, 2L * packed.remaining(), globalScale,
        payload.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer());
  }
}
