package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** Writes the blocks of one tensor, in order: codes, scale and error sums. */
final class BlockEncoder {
  private final Nvfp4Recipe recipe;
  private final BlockScaleChooser chooser;
  private final float globalScale;
  private final ByteBuffer packed;
  private final ByteBuffer scales;
  private final ErrorSums sums;

  /** @param sums or null to skip that work */
  BlockEncoder(Nvfp4Recipe recipe, ScaleChoice choice, ElementType type, float globalScale, ByteBuffer packed,
      ByteBuffer scales, ErrorSums sums) {
    this.recipe = recipe;
    this.chooser = new BlockScaleChooser(recipe, choice, type, globalScale);
    this.globalScale = globalScale;
    this.packed = packed.slice().order(ByteOrder.LITTLE_ENDIAN);
    this.scales = scales.slice();
    this.sums = sums;
  }

  /** Quantizes the next block's 16 finite weights. */
  void add(float[] w) {
    int scale = chooser.next(w);
    add(w, codes(w, recipe.dequantFactor(scale, globalScale)), scale);
  }

  /** Writes the next block as it is given: the first code is in the lowest 4 bits. */
  void add(float[] w, long codes, int scale) {
    packed.putLong(codes);
    scales.put((byte) scale);
    if (sums != null) {
      sums.addBlock(w, codes, recipe.dequantFactor(scale, globalScale));
    }
  }

  private static long codes(float[] w, float d) {
    long codes = 0;
    for (int i = 0; i < Nvfp4.BLOCK; i++) {
      // A true division: the product with 1 / d rounds twice and gives other codes now and then.
      codes |= (long) E2M1.encode(w[i] / d) << 4 * i;
    }

    return codes;
  }
}
