package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/** A tensor encoded by the reference, as a checkpoint's writer would. */
record Encoded(float globalScale, byte[] packed, byte[] scales, ErrorSums sums) {
  static Encoded of(Nvfp4Recipe recipe, ElementType type, ByteBuffer data, long rows, long cols) {
    return of(recipe, type, data, rows, cols, Nvfp4.amax(type, data));
  }

  static Encoded of(Nvfp4Recipe recipe, ElementType type, ByteBuffer data, long rows, long cols, float amax) {
    float globalScale = recipe.globalScale(amax, type);
    byte[] packed = new byte[(int) (rows * cols / 2)];
    byte[] scales = new byte[(int) (rows * cols / 16)];
    ErrorSums sums = new ErrorSums();
    if (Nvfp4.isZero(amax)) {
      Nvfp4.encodeZero(recipe, rows, cols, ByteBuffer.wrap(packed), ByteBuffer.wrap(scales));
    } else {
      Nvfp4.encode(recipe, type, data, rows, cols, globalScale, ByteBuffer.wrap(packed), ByteBuffer.wrap(scales), sums);
    }

    return new Encoded(globalScale, packed, scales, sums);
  }

  float[] decode(Nvfp4Recipe recipe, long rows, long cols) {
    float[] out = new float[(int) (rows * cols)];
    FloatBuffer target = FloatBuffer.wrap(out);
    Nvfp4.decode(recipe, ByteBuffer.wrap(packed), ByteBuffer.wrap(scales), rows, cols, globalScale, target);
    return out;
  }

  int code(int element) {
    return packed[element / 2] >>> 4 * (element % 2) & 0xF;
  }

  static ByteBuffer bf16(float... values) {
    ByteBuffer data = ByteBuffer.allocate(2 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (float value : values) {
      data.putShort(BFloat16.fromFloat(value));
    }

    return data.flip();
  }

  static ByteBuffer f16(float... values) {
    ByteBuffer data = ByteBuffer.allocate(2 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (float value : values) {
      data.putShort(Float16.fromFloat(value));
    }

    return data.flip();
  }

  static ByteBuffer f32(float... values) {
    ByteBuffer data = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    for (float value : values) {
      data.putFloat(value);
    }

    return data.flip();
  }
}
