package org.sparkfp4.formats;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** The bytes that the digests of Edge-LLM's own packers were made of. */
final class LayoutBytes {
  private LayoutBytes() {}

  static byte[] codes(long seed, int rows, int k) {
    return generated(seed, rows * k / 2);
  }

  /** From 0x01 to 0x7E. */
  static byte[] scales(long seed, int rows, int k) {
    byte[] bytes = generated(seed + 1, rows * k / 16);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) ((bytes[i] & 0xFF) % 126 + 1);
    }

    return bytes;
  }

  static String sha256(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  private static byte[] generated(long seed, int size) {
    byte[] bytes = new byte[size];
    long x = seed;
    for (int i = 0; i < size; i++) {
      x = (1103515245 * x + 12345) % (1L << 31);
      bytes[i] = (byte) (x >> 16);
    }

    return bytes;
  }
}
