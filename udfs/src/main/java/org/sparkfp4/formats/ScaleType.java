package org.sparkfp4.formats;

/** What the scales of a stored-quantized weight are, little-endian. */
public enum ScaleType {
  F32(4), BF16(2), F16(2), E8M0(1);

  private final int bytes;

  ScaleType(int bytes) {
    this.bytes = bytes;
  }

  public int bytes() {
    return bytes;
  }
}
