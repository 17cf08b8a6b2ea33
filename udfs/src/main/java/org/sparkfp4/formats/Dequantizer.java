package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Turns tensors of a quantized source, which stay unquantized in the output, into bfloat16. */
public final class Dequantizer {
  private Dequantizer() {}

  /**
   * Dequantizes a tensor, or some rows of it that begin with a block of the scheme; each weight is rounded to nearest
   * even.
   *
   * @param codes [rows, cols], from position to limit
   * @param scales of these rows, little-endian, from position to limit
   * @param out takes 2 * rows * cols bytes, little-endian
   * @throws NonFiniteException naming the first weight that is not finite in bfloat16; the segment is 0
   * @throws IllegalArgumentException if a buffer does not fit
   */
  public static void toBf16(WeightScheme scheme, ByteBuffer codes, ByteBuffer scales, long rows, long cols,
      ByteBuffer out) {
    QuantizedWeights weights = new QuantizedWeights(scheme, codes, scales, rows, cols);
    long bytes = Math.multiplyExact(rows, cols) * ElementType.BF16.bytes();
    if (out.remaining() < bytes) {
      throw new IllegalArgumentException(
          "Invalid buffer: out has room for " + out.remaining() + " bytes, needs " + bytes);
    }

    ByteBuffer target = out.slice().order(ByteOrder.LITTLE_ENDIAN);
    for (long row = 0; row < rows; row++) {
      for (long col = 0; col < cols; col++) {
        float w = weights.weight(row, col);
        short rounded = BFloat16.fromFloat(w);
        if (!Float.isFinite(BFloat16.toFloat(rounded))) {
          throw new NonFiniteException(0, row * cols + col, w);
        }

        target.putShort(rounded);
      }
    }
  }
}
