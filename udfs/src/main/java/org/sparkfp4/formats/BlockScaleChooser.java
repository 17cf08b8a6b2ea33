package org.sparkfp4.formats;

/** Chooses the scales of one tensor's blocks, in order: the definition of {@link ScaleSearch}, plainly. */
final class BlockScaleChooser {
  private static final int LARGEST_CODE = 126;

  private final Nvfp4Recipe recipe;
  private final ScaleSearch search;
  private final Importance importance;
  private final ElementType type;
  private final float globalScale;
  private final BlockLoss plain = new BlockLoss();
  private final float[] weights;
  private long block;

  BlockScaleChooser(Nvfp4Recipe recipe, ScaleChoice choice, ElementType type, float globalScale) {
    this.recipe = recipe;
    this.search = choice.search();
    this.importance = choice.importance();
    this.type = type;
    this.globalScale = globalScale;
    this.weights = importance == null ? null : new float[importance.weighting().blockValues()];
  }

  /** The E4M3 byte of the next block's 16 finite weights. */
  int next(float[] w) {
    float amax = 0;
    for (float x : w) {
      amax = Math.max(amax, Math.abs(x));
    }

    int nearest = recipe.blockScale(amax, globalScale, type);
    boolean weighs = importance != null && importance.load(block++, weights);
    if (search == ScaleSearch.RTN || amax < ScaleSearch.LEAST || amax > ScaleSearch.MOST) {
      return nearest;
    }

    if (search == ScaleSearch.FOUR_OVER_SIX) {
      int toFour = recipe.blockScaleToFour(amax, globalScale, type);
      return loss(w, toFour, false) < loss(w, nearest, false) ? toFour : nearest;
    }

    int best = nearest;
    float least = Float.POSITIVE_INFINITY;
    for (int code = 1; code <= LARGEST_CODE; code++) {
      float loss = loss(w, code, weighs);
      // NaN is not less.
      if (loss < least) {
        best = code;
        least = loss;
      }
    }

    return best;
  }

  private float loss(float[] w, int scale, boolean weighs) {
    float d = recipe.dequantFactor(scale, globalScale);
    return weighs ? plain.weighted(w, d, importance.weighting(), weights) : plain.of(w, d);
  }
}
