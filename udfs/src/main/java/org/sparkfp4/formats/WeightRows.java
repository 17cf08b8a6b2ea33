package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** A weight [rows, cols] as binary32, block of 16 by block, whatever it is stored as. */
public final class WeightRows {
  private final BlockSource source;
  private final ElementType type;
  private final int blocksPerRow;

  private WeightRows(BlockSource source, ElementType type, long cols) {
    this.source = source;
    this.type = type;
    this.blocksPerRow = Math.toIntExact(cols / Nvfp4.BLOCK);
  }

  /**
   * The weights of a source's rows.
   *
   * @param data the elements or codes, from position to limit
   * @param scales of stored weights, from position to limit; null for plain elements
   * @param cols a multiple of 16
   * @throws IllegalArgumentException if a buffer of stored weights does not hold exactly what [rows, cols] takes
   */
  public static WeightRows of(SourceScheme scheme, ByteBuffer data, ByteBuffer scales, long rows, long cols) {
    if (scheme.isStored()) {
      return new WeightRows(
          new QuantizedWeights(scheme.stored(), data, scales, rows, cols), ElementType.F32, cols);
    }

    ElementType type = scheme.plain();
    ByteBuffer source = data.slice().order(ByteOrder.LITTLE_ENDIAN);
    return new WeightRows((block, w) -> type.load(source, block * Nvfp4.BLOCK * type.bytes(), w), type, cols);
  }

  /** Fills {@code w} with the 16 weights of a block. */
  public void load(long row, int block, float[] w) {
    source.load(Math.toIntExact(row * blocksPerRow + block), w);
  }

  /** What the weights are encoded as. */
  public ElementType type() {
    return type;
  }
}
