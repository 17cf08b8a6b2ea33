package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * MXFP4 (OCP Microscaling Formats 1.0): 32 consecutive elements of a row share a scale byte u ({@link E8M0}), an element
 * is one E2M1 code of x * 2^(127 - u), nearest even, saturating, the sign of zero kept. A row [cols] becomes packed
 * [cols / 2], the even element in the low half of a byte, and scales [cols / 32].
 */
public final class Mxfp4Codec {
  /** Elements that share a scale. */
  public static final int BLOCK = 32;

  /** Bytes of a block's codes. */
  public static final int PACKED_BLOCK = BLOCK / 2;

  private static final int INFINITY = 0x7F80_0000;

  private Mxfp4Codec() {}

  /**
   * Encodes a tensor.
   *
   * @param data little-endian elements [rows, cols], from position to limit
   * @param cols a multiple of 32
   * @param packed takes [rows, cols / 2] from its position on, which does not move
   * @param scales takes [rows, cols / 32] likewise
   * @throws NonFiniteRowException naming the first element that is NaN or infinite
   * @throws IllegalArgumentException if cols is no positive multiple of 32 or a buffer is too small
   */
  public static void encode(ScaleRule rule, ElementType type, ByteBuffer data, long rows, int cols, ByteBuffer packed,
      ByteBuffer scales) {
    requireColumns(cols);
    ByteBuffer in = data.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer codes = packed.slice();
    ByteBuffer bytes = scales.slice();
    requireBytes("data", in, rows * cols * type.bytes());
    requireBytes("packed", codes, rows * cols / 2);
    requireBytes("scales", bytes, rows * (cols / BLOCK));
    float[] row = new float[cols];
    for (int r = 0; r < rows; r++) {
      type.load(in, r * cols * type.bytes(), row);
      NonFiniteRowException.check(row, r);
      encodeRow(rule, row, r, codes, r * cols / 2, bytes, r * (cols / BLOCK));
    }
  }

  /**
   * Decodes a tensor: every value is exact, or infinite where it passes binary32's range.
   *
   * @param packed [rows, cols / 2], from position to limit
   * @param scales [rows, cols / 32], from position to limit; 255 gives NaN, the canonical one
   * @param out takes as many values as packed has codes
   * @throws IllegalArgumentException if the sizes do not go together
   */
  public static void decode(ByteBuffer packed, ByteBuffer scales, float[] out) {
    if (packed.remaining() != scales.remaining() * PACKED_BLOCK || out.length != packed.remaining() * 2) {
      throw new IllegalArgumentException("Invalid MXFP4 tensor: " + packed.remaining() + " bytes of codes and "
          + scales.remaining() + " scales for " + out.length + " values, must be 16 bytes and a scale for every 32");
    }

    for (int block = 0; block < scales.remaining(); block++) {
      decodeBlock(packed, packed.position() + block * PACKED_BLOCK, scales.get(scales.position() + block), out,
          block * BLOCK);
    }
  }

  /**
   * Adds what encoding a tensor lost to sums of two blocks of 16 for each of 32.
   *
   * @param data little-endian elements, from position to limit
   * @param packed their codes, from position to limit
   * @param scales their scales, from position to limit
   * @throws IllegalArgumentException if the sizes do not go together
   */
  public static void addErrors(
      ElementType type, ByteBuffer data, ByteBuffer packed, ByteBuffer scales, ErrorSums sums) {
    int blocks = scales.remaining();
    if (packed.remaining() != blocks * PACKED_BLOCK || data.remaining() != blocks * BLOCK * type.bytes()) {
      throw new IllegalArgumentException("Invalid MXFP4 tensor: " + packed.remaining() + " bytes of codes and "
          + blocks + " scales for " + data.remaining() + " bytes of " + type);
    }

    ByteBuffer in = data.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer codes = packed.slice().order(ByteOrder.LITTLE_ENDIAN);
    float[] half = new float[Nvfp4.BLOCK];
    for (int i = 0; i < blocks * 2; i++) {
      type.load(in, i * half.length * type.bytes(), half);
      sums.addBlock(half, codes.getLong(i * Nvfp4.PACKED_BLOCK), E8M0.decode(scales.get(scales.position() + i / 2)));
    }
  }

  /** Encodes a row to absolute places of both buffers; a result that is not finite is refused by its row's number. */
  static void encodeRow(ScaleRule rule, float[] row, long number, ByteBuffer packed, int packedAt, ByteBuffer scales,
      int scalesAt) {
    for (int block = 0; block < row.length / BLOCK; block++) {
      int from = block * BLOCK;
      int amax = 0;
      for (int i = 0; i < BLOCK; i++) {
        amax = Math.max(amax, Minifloat.magnitude(row[from + i]));
      }

      if (amax >= INFINITY) {
        throw NonFiniteRowException.normalised(row, number);
      }

      int scale = rule.scale(amax, row, from);
      float inverse = inverse(scale);
      for (int i = 0; i < PACKED_BLOCK; i++) {
        int even = E2M1.encodeWithSignBit(row[from + 2 * i] * inverse);
        int odd = E2M1.encodeWithSignBit(row[from + 2 * i + 1] * inverse);
        packed.put(packedAt + block * PACKED_BLOCK + i, (byte) (even | odd << 4));
      }

      scales.put(scalesAt + block, (byte) scale);
    }
  }

  static void decodeBlock(ByteBuffer packed, int at, byte scale, float[] out, int to) {
    float unit = E8M0.decode(scale);
    for (int i = 0; i < PACKED_BLOCK; i++) {
      int pair = packed.get(at + i);
      out[to + 2 * i] = Minifloat.canonical(E2M1.decode(pair) * unit);
      out[to + 2 * i + 1] = Minifloat.canonical(E2M1.decode(pair >> 4) * unit);
    }
  }

  /** 2^(127 - u) for u up to 253: a normal number, so that only subnormal products round. */
  static float inverse(int scale) {
    return Float.intBitsToFloat(254 - scale << 23);
  }

  /** Refuses what has no whole blocks. */
  public static void requireColumns(long cols) {
    if (cols <= 0 || cols % BLOCK != 0) {
      throw new IllegalArgumentException("Invalid columns: " + cols + ", must be a positive multiple of " + BLOCK);
    }
  }

  static void requireBytes(String name, ByteBuffer buffer, long bytes) {
    if (buffer.capacity() < bytes) {
      throw new IllegalArgumentException(
          "Invalid " + name + ": " + buffer.capacity() + " bytes, must be " + bytes + " at least");
    }
  }
}
