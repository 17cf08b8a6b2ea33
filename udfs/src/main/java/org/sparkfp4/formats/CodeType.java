package org.sparkfp4.formats;

/** What the elements of a quantized source are: codes whose value a {@link ScaleType scale} multiplies. */
public enum CodeType {
  /** FP8 E4M3FN, a byte an element. */
  E4M3(8, 1),

  /** compressed-tensors' pack-quantized: words of eight nibbles, the lowest first, each its value plus 8. */
  INT4(4, 4),

  /** FP4 E2M1, the even element in the low half of a byte. */
  E2M1(4, 1);

  private final int bits;
  private final int wordBytes;

  CodeType(int bits, int wordBytes) {
    this.bits = bits;
    this.wordBytes = wordBytes;
  }

  /** Bits an element. */
  public int bits() {
    return bits;
  }

  /** The value of a code, exactly; only its low {@link #bits} count. NaN for the two NaN of E4M3. */
  public float decode(int code) {
    return switch (this) {
      case E4M3 -> org.sparkfp4.formats.E4M3.decode(code);
      case INT4 -> (code & 0xF) - 8;
      case E2M1 -> org.sparkfp4.formats.E2M1.decode(code);
    };
  }

  /** Bytes of a row, whose last word may be partly used. */
  long rowBytes(long cols) {
    long wordElements = 8L * wordBytes / bits;
    return (cols + wordElements - 1) / wordElements * wordBytes;
  }
}
