package org.sparkfp4.formats;

/**
 * vLLM's block scales for Marlin, "S0E5M3": bits 14 to 7 of the binary16 nearest to {@code scale * 2^7 * factor}. Exact
 * for every E4M3 scale from 0 to {@link #limit}, since E4M3 has no more than 3 bits behind the leading one. The kernel
 * wants {@code scale * 2^7 * factor} to be 0 or at least 2, and the global scale is divided by the factor.
 *
 * @param factor a power of two from 1 to 2^17; 1 for float16 activations
 */
public record MarlinScale(float factor) {
  private static final float GAIN = 0x1p7f;
  private static final float MAX_FACTOR = 0x1p17f;

  public MarlinScale {
    boolean powerOfTwo = factor >= 1 && factor <= MAX_FACTOR && Math.scalb(1f, Math.getExponent(factor)) == factor;
    if (!powerOfTwo) {
      throw new IllegalArgumentException(
          "Invalid factor: " + factor + ", must be a power of two from 1 to " + (int) MAX_FACTOR);
    }
  }

  /**
   * For bfloat16 activations: the largest factor that leaves no scale above 448, which is vLLM's choice.
   *
   * @param largest E4M3 byte of the scales, from 0 to 0x7E
   */
  public static MarlinScale forLargest(int largest) {
    float scale = E4M3.decode(largest);
    float factor = 1;
    while (scale > 0 && factor < MAX_FACTOR && 2 * factor * scale <= E4M3.MAX) {
      factor *= 2;
    }

    return new MarlinScale(factor);
  }

  /** The largest E4M3 byte that is held exactly. */
  public int limit() {
    int code = 0x7E;
    while (E4M3.decode(code) * factor > E4M3.MAX) {
      code--;
    }

    return code;
  }

  /** The byte of an E4M3 scale; 0xFF, which is none, for one that is not held: above {@link #limit}, NaN, negative. */
  public int encode(int e4m3) {
    int code = e4m3 & 0xFF;
    return code <= limit() ? Float16.fromFloat(E4M3.decode(code) * GAIN * factor) >> 7 & 0xFF : 0xFF;
  }

  /** The E4M3 scale of a byte; 0x7F, NaN, for a byte that no scale has. */
  public int decode(int code) {
    int scale = E4M3.encode(Float16.toFloat((short) ((code & 0xFF) << 7)) / (GAIN * factor));
    return encode(scale) == (code & 0xFF) ? scale : 0x7F;
  }
}
