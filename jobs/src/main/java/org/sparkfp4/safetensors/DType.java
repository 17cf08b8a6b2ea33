package org.sparkfp4.safetensors;

import java.util.HashMap;
import java.util.Map;

/** Element types of the safetensors format, named as the header names them. */
public enum DType {
  BOOL(8), U8(8), I8(8), F8_E5M2(8), F8_E4M3(8), F8_E8M0(8),
  I16(16), U16(16), F16(16), BF16(16),
  I32(32), U32(32), F32(32),
  F64(64), I64(64), U64(64), C64(64),
  F4(4), F6_E2M3(6), F6_E3M2(6);

  private static final Map<String, DType> BY_NAME = new HashMap<>();

  static {
    for (DType type : values()) {
      BY_NAME.put(type.name(), type);
    }
  }

  private final int bits;

  DType(int bits) {
    this.bits = bits;
  }

  /** Bits of one element. */
  public int bits() {
    return bits;
  }

  /** The type that a header calls {@code name}, or null when the format has no such type. */
  public static DType named(String name) {
    return BY_NAME.get(name);
  }

  /**
   * Bytes of {@code elements} elements.
   *
   * @throws ArithmeticException when the size overflows 64 bits or is no whole number of bytes
   */
  public long bytes(long elements) {
    long total = Math.multiplyExact(elements, bits);
    if ((total & 7) != 0) {
      throw new ArithmeticException(elements + " elements of " + name() + " are no whole number of bytes");
    }

    return total >>> 3;
  }
}
