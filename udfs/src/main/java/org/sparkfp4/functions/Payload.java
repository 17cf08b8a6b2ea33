package org.sparkfp4.functions;

import org.apache.spark.sql.vectorized.ColumnVector;
import org.sparkfp4.formats.ElementType;

/** A tensor as SQL functions take it: its little-endian bytes, and how they are told from what they should be. */
final class Payload {
  /** Bytes of the largest array that a JVM makes. */
  static final int LARGEST = Integer.MAX_VALUE - 8;

  private Payload() {}

  /** A value that must be there. */
  static <T> T required(T value, String name) {
    if (value == null) {
      throw new IllegalArgumentException("Invalid " + name + ": null, must be given");
    }

    return value;
  }

  /** A count that must be there and positive. */
  static int positive(Integer value, String name) {
    requirePositive(required(value, name), name);
    return value;
  }

  /** Refuses what is no count. */
  static void requirePositive(long value, String name) {
    if (value <= 0) {
      throw new IllegalArgumentException("Invalid " + name + ": " + value + ", must be positive");
    }
  }

  /** Elements of a row, whole blocks. */
  static int columns(Long cols, int block) {
    if (required(cols, "cols") <= 0 || cols % block != 0 || cols > LARGEST) {
      throw new IllegalArgumentException(
          "Invalid cols: " + cols + ", must be a positive multiple of " + block + " below 2^31");
    }

    return cols.intValue();
  }

  /**
   * Bytes of the values of so many bytes of codes, as a payload of F32.
   *
   * @param scales bytes of their scales, of which there must be one for every so many bytes of codes
   */
  static int valueBytes(long packed, long scales, int bytesAScale) {
    if (packed != scales * bytesAScale) {
      throw new IllegalArgumentException("Invalid scales: " + scales + " bytes for " + packed
          + " bytes of codes, must be one for every " + bytesAScale);
    }

    if (packed > LARGEST / (2 * Float.BYTES)) {
      throw new IllegalArgumentException("Invalid packed: the values of " + packed + " bytes of codes are of "
          + 2 * Float.BYTES + " times as many, must be below 2 GiB; dequantize the tensor in parts");
    }

    return (int) packed * 2 * Float.BYTES;
  }

  /** A text, or null. */
  static String text(ColumnVector column, int row) {
    return column.isNullAt(row) ? null : column.getUTF8String(row).toString();
  }

  /** Rows of a tensor whose row has so many bytes. */
  static int rows(byte[] payload, long rowBytes, String name) {
    if (payload.length % rowBytes != 0) {
      throw new IllegalArgumentException(
          "Invalid " + name + ": " + payload.length + " bytes, must be rows of " + rowBytes);
    }

    return (int) (payload.length / rowBytes);
  }

  /** Refuses a tensor that has not just so many bytes. */
  static void requireBytes(byte[] payload, long bytes, String name) {
    if (payload.length != bytes) {
      throw new IllegalArgumentException("Invalid " + name + ": " + payload.length + " bytes, must be " + bytes);
    }
  }

  /** A norm's weights or biases: of the activations' type or F32, which their length tells. */
  static float[] weights(byte[] payload, int count, ElementType type, String name) {
    ElementType stored = payload.length == (long) count * Float.BYTES ? ElementType.F32 : type;
    requireBytes(payload, (long) count * stored.bytes(), name);
    return stored.floats(payload);
  }
}
