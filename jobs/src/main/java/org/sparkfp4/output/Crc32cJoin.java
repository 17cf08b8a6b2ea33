package org.sparkfp4.output;

/**
 * The CRC-32C of bytes of whose two parts it is known. A CRC is what is left of a polynomial over GF(2) modulo that of
 * the CRC: the first part's is moved on by as many powers of x as the second has bits, and the two are added.
 */
final class Crc32cJoin {
  // polynomials as the CRC has them: the highest bit of a word is the coefficient of 1
  private static final int CASTAGNOLI = 0x82F63B78;
  private static final int ONE = 1 << 31;
  private static final int X_TO_THE_8 = 1 << (31 - 8);

  private Crc32cJoin() {}

  /** The CRC-32C of a part with that of {@code first} and one of {@code length} bytes with that of {@code second}. */
  static int join(int first, int second, long length) {
    return multiply(first, powerOfBytes(length)) ^ second;
  }

  /** x to the power 8 · {@code bytes}, by squaring. */
  private static int powerOfBytes(long bytes) {
    int power = ONE;
    int square = X_TO_THE_8;
    for (long rest = bytes; rest != 0; rest >>>= 1) {
      if ((rest & 1) != 0) {
        power = multiply(power, square);
      }

      square = multiply(square, square);
    }

    return power;
  }

  private static int multiply(int a, int b) {
    int product = 0;
    int shifted = b;
    for (int bit = 31; bit >= 0; bit--) {
      if ((a >>> bit & 1) != 0) {
        product ^= shifted;
      }

      shifted = shifted >>> 1 ^ ((shifted & 1) != 0 ? CASTAGNOLI : 0);
    }

    return product;
  }
}
