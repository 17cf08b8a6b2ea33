package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** What a source tensor's elements are: floating point, stored little-endian, that widens to binary32 exactly. */
public enum ElementType {
  BF16(2),
  F16(2),
  F32(4);

  private final int bytes;

  ElementType(int bytes) {
    this.bytes = bytes;
  }

  /**
   * The type that a safetensors header calls {@code dtype}.
   *
   * @throws IllegalArgumentException if it is none of BF16, F16 and F32
   */
  public static ElementType of(String dtype) {
    return of(dtype, "dtype");
  }

  /**
   * The same of an argument of another name.
   *
   * @param name for messages
   */
  public static ElementType of(String dtype, String name) {
    for (ElementType type : values()) {
      if (type.name().equals(dtype)) {
        return type;
      }
    }

    throw new IllegalArgumentException("Invalid " + name + ": " + dtype + ", must be BF16, F16 or F32");
  }

  /** Bytes an element. */
  public int bytes() {
    return bytes;
  }

  /**
   * One element, widened exactly.
   *
   * @param littleEndian a buffer whose order is little-endian
   * @param byteOffset absolute index of the element's first byte
   */
  public float load(ByteBuffer littleEndian, int byteOffset) {
    return switch (this) {
      case BF16 -> BFloat16.toFloat(littleEndian.getShort(byteOffset));
      case F16 -> Float16.toFloat(littleEndian.getShort(byteOffset));
      case F32 -> littleEndian.getFloat(byteOffset);
    };
  }

  /** All elements of a little-endian tensor. */
  public float[] floats(byte[] tensor) {
    float[] values = new float[tensor.length / bytes];
    load(ByteBuffer.wrap(tensor).order(ByteOrder.LITTLE_ENDIAN), 0, values);
    return values;
  }

  /** Stores one element, rounded to nearest even. */
  void store(float x, ByteBuffer littleEndian, int byteOffset) {
    switch (this) {
      case BF16 -> littleEndian.putShort(byteOffset, BFloat16.fromFloat(x));
      case F16 -> littleEndian.putShort(byteOffset, Float16.fromFloat(x));
      case F32 -> littleEndian.putFloat(byteOffset, x);
    }
  }

  /** As many consecutive elements as {@code out} holds; the type is chosen once, outside the loop. */
  void load(ByteBuffer littleEndian, int byteOffset, float[] out) {
    switch (this) {
      case BF16 -> {
        for (int i = 0; i < out.length; i++) {
          out[i] = BFloat16.toFloat(littleEndian.getShort(byteOffset + 2 * i));
        }
      }
      case F16 -> {
        for (int i = 0; i < out.length; i++) {
          out[i] = Float16.toFloat(littleEndian.getShort(byteOffset + 2 * i));
        }
      }
      case F32 -> {
        for (int i = 0; i < out.length; i++) {
          out[i] = littleEndian.getFloat(byteOffset + 4 * i);
        }
      }
    }
  }
}
