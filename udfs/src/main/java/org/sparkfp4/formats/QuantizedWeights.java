package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A tensor of a quantized source, dequantized element by element: the definition of {@link WeightScheme}. */
final class QuantizedWeights implements BlockSource {
  private final WeightScheme scheme;
  private final ByteBuffer codes;
  private final ByteBuffer scales;
  private final long cols;

  /** @throws IllegalArgumentException if a buffer does not hold exactly what [rows, cols] takes */
  QuantizedWeights(WeightScheme scheme, ByteBuffer codes, ByteBuffer scales, long rows, long cols) {
    check("codes", codes, scheme.codeBytes(rows, cols), scheme, rows, cols);
    check("scales", scales, scheme.scaleBytes(rows, cols), scheme, rows, cols);
    this.scheme = scheme;
    this.codes = codes.slice().order(ByteOrder.LITTLE_ENDIAN);
    this.scales = scales.slice().order(ByteOrder.LITTLE_ENDIAN);
    this.cols = cols;
  }

  /** One weight: a single binary32 product. */
  float weight(long row, long col) {
    return scheme.codes().decode(code(row, col)) * scale(row, col);
  }

  @Override
  public void load(int block, float[] w) {
    long blocksPerRow = cols / Nvfp4.BLOCK;
    long row = block / blocksPerRow;
    long col = block % blocksPerRow * Nvfp4.BLOCK;
    // The columns that share a scale are whole blocks.
    float scale = scale(row, col);
    for (int i = 0; i < w.length; i++) {
      w[i] = scheme.codes().decode(code(row, col + i)) * scale;
    }
  }

  private int code(long row, long col) {
    int bits = scheme.codes().bits();
    long start = row * scheme.codes().rowBytes(cols);
    // A little-endian word of nibbles, the lowest first, is the same bytes as pairs of nibbles, the low one first.
    return (codes.get((int) (start + col * bits / 8)) & 0xFF) >>> col * bits % 8;
  }

  private float scale(long row, long col) {
    long scaleRow = scheme.blockRows() == 0 ? 0 : row / scheme.blockRows();
    long scaleCol = scheme.blockCols() == 0 ? 0 : col / scheme.blockCols();
    long index = scaleRow * scheme.scaleCols(cols) + scaleCol;
    return scheme.scales().load(scales, (int) index * scheme.scales().bytes());
  }

  private static void check(String what, ByteBuffer buffer, long needed, WeightScheme scheme, long rows, long cols) {
    if (buffer.remaining() != needed) {
      throw new IllegalArgumentException("Invalid " + what + ": " + buffer.remaining() + " bytes, [" + rows + ", "
          + cols + "] of " + scheme.text() + " has " + needed);
    }
  }
}
