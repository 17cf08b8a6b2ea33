package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/** The statistics that a layer's errors are weighed by, block by block of its columns. */
public final class Importance {
  private final Weighting weighting;
  private final FloatBuffer values;
  private final int blocksPerRow;
  private final int first;

  private Importance(Weighting weighting, FloatBuffer values, int first) {
    this.weighting = weighting;
    this.values = values;
    this.blocksPerRow = values.limit() / weighting.blockValues();
    this.first = first;
  }

  /**
   * The importance of a layer's columns.
   *
   * @param data binary32, little-endian, from position to limit: {@link Weighting#values} of them
   * @throws IllegalArgumentException if the values are not those of whole blocks, or one cannot be: E[x²] that is
   *     negative, NaN or infinite, or E[x xᵀ] that is NaN or infinite or has such a diagonal
   */
  public static Importance of(Weighting weighting, ByteBuffer data) {
    FloatBuffer values = data.slice().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    if (data.remaining() == 0 || data.remaining() % (Float.BYTES * weighting.blockValues()) != 0) {
      throw new IllegalArgumentException("Invalid importance: " + data.remaining() + " bytes, must be "
          + Float.BYTES * weighting.blockValues() + " for each block of " + Nvfp4.BLOCK + " columns");
    }

    for (int i = 0; i < values.limit(); i++) {
      check(weighting, i, values.get(i));
    }

    return new Importance(weighting, values, 0);
  }

  private static void check(Weighting weighting, int i, float value) {
    int row = i / Nvfp4.BLOCK % Nvfp4.BLOCK;
    boolean square = weighting == Weighting.DIAGONAL || row == i % Nvfp4.BLOCK;
    if (!Float.isFinite(value) || square && value < 0) {
      int column = weighting == Weighting.DIAGONAL ? i : i / weighting.blockValues() * Nvfp4.BLOCK + row;
      throw new IllegalArgumentException("Invalid importance: " + value + " of column " + column + ", must be finite"
          + (square ? " and not negative" : ""));
    }
  }

  /** The same, of blocks that begin behind so many others of the tensor. */
  public Importance after(long blocks) {
    return new Importance(weighting, values, (int) ((first + blocks) % blocksPerRow));
  }

  /** Fills {@code h} with the values of one block, and returns whether any of them is not zero. */
  boolean load(long block, float[] h) {
    int start = (int) ((first + block) % blocksPerRow) * h.length;
    boolean weighs = false;
    for (int i = 0; i < h.length; i++) {
      h[i] = values.get(start + i);
      weighs |= h[i] != 0;
    }

    return weighs;
  }

  Weighting weighting() {
    return weighting;
  }
}
