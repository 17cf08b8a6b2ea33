package org.sparkfp4.verify;

import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

/** Decodes a layer slab by slab and sums up how far it is from its source. */
final class AccuracyScan {
  private static final int MAGNITUDE = 7;
  private static final float LARGEST = 6f;

  /** E4M3 code of 2^-6. */
  private static final int SMALLEST_NORMAL = 0x08;

  private final Nvfp4Recipe recipe;
  private final float globalScale;
  private final long rows;
  private final int cols;
  private final FloatBuffer decoded;
  private final CodeCounts counts;
  private double squares;
  private double errors;
  private double decodedSquares;
  private double product;
  private long zeros;
  private long saturated;
  private long subnormal;
  private double blockError;
  private long worstBlock;

  /**
   * @param rowsPerSlab most rows of a slab
   * @param counts where codes and scales are counted, with those of other layers
   */
  AccuracyScan(Nvfp4Recipe recipe, float globalScale, long rows, int cols, int rowsPerSlab, CodeCounts counts) {
    this.recipe = recipe;
    this.globalScale = globalScale;
    this.rows = rows;
    this.cols = cols;
    this.decoded = FloatBuffer.allocate(Math.multiplyExact(rowsPerSlab, cols));
    this.counts = counts;
  }

  /**
   * Adds a slab.
   *
   * @param row its first row
   * @param weights the source's elements
   */
  void add(long row, int count, ElementType type, ByteBuffer weights, ByteBuffer packed, ByteBuffer scales) {
    Nvfp4.decode(recipe, packed, scales, count, cols, globalScale, decoded);
    long first = row * cols / Nvfp4.BLOCK;
    for (int block = 0; block < scales.limit(); block++) {
      int scale = scales.get(block);
      subnormal += (scale & 0x7F) < SMALLEST_NORMAL ? 1 : 0;
      counts.addScale(scale);
      addBlock(first + block, block * Nvfp4.BLOCK, type, weights, packed, scale);
    }
  }

  private void addBlock(long block, int from, ElementType type, ByteBuffer weights, ByteBuffer packed, int scale) {
    double limit = (double) LARGEST * recipe.dequantFactor(scale, globalScale);
    double error = 0;
    for (int i = from; i < from + Nvfp4.BLOCK; i++) {
      double w = type.load(weights, i * type.bytes());
      double v = decoded.get(i);
      int magnitude = packed.get(i >> 1) >> ((i & 1) << 2) & MAGNITUDE;
      counts.addCode(magnitude);
      zeros += magnitude == 0 ? 1 : 0;
      saturated += magnitude == MAGNITUDE && Math.abs(w) > limit ? 1 : 0;
      squares += w * w;
      decodedSquares += v * v;
      product += w * v;
      error += (w - v) * (w - v);
    }

    errors += error;
    if (error > blockError) {
      blockError = error;
      worstBlock = block;
    }
  }

  Accuracy accuracy() {
    long blocksPerRow = cols / Nvfp4.BLOCK;
    return new Accuracy(
        rows, cols, squares, errors, decodedSquares, product, zeros, saturated, subnormal, blockError,
        worstBlock / blocksPerRow, worstBlock % blocksPerRow * Nvfp4.BLOCK);
  }
}
