package org.sparkfp4.formats;

import java.nio.ByteBuffer;

/** What the scales of a quantized source are, stored little-endian; all widen to binary32 exactly. */
public enum ScaleType {
  F32(4),
  BF16(2),
  F16(2),
  E8M0(1);

  private final int bytes;

  ScaleType(int bytes) {
    this.bytes = bytes;
  }

  /** Bytes a scale. */
  public int bytes() {
    return bytes;
  }

  /**
   * One scale, widened exactly.
   *
   * @param littleEndian a buffer whose order is little-endian
   * @param byteOffset absolute index of the scale's first byte
   */
  public float load(ByteBuffer littleEndian, int byteOffset) {
    return switch (this) {
      case F32 -> littleEndian.getFloat(byteOffset);
      case BF16 -> BFloat16.toFloat(littleEndian.getShort(byteOffset));
      case F16 -> Float16.toFloat(littleEndian.getShort(byteOffset));
      case E8M0 -> org.sparkfp4.formats.E8M0.decode(littleEndian.get(byteOffset));
    };
  }
}
