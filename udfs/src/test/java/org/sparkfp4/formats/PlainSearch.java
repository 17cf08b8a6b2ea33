package org.sparkfp4.formats;

/** The search once more, from the words of its definition, rounding by search: slow, and with nothing shared. */
final class PlainSearch {
  private final Nvfp4Recipe recipe;
  private final float globalScale;
  private final float[] importance;

  /** @param importance of all columns: 16 values a block, or 256; null for a sweep */
  PlainSearch(Nvfp4Recipe recipe, float globalScale, float[] importance) {
    this.recipe = recipe;
    this.globalScale = globalScale;
    this.importance = importance;
  }

  /** The code of the least loss; rows are ten of the importance's length, or one. */
  int best(float[] w, int block) {
    int best = 0;
    float least = Float.POSITIVE_INFINITY;
    for (int code = 1; code < 127; code++) {
      float loss = loss(w, block, code);
      if (loss < least) {
        least = loss;
        best = code;
      }
    }

    return best;
  }

  private float loss(float[] w, int block, int code) {
    float scale = (float) Grid.E4M3_VALUES.value(code);
    float d = recipe == Nvfp4Recipe.MODELOPT ? scale * globalScale : scale / globalScale;
    float[] errors = new float[16];
    for (int i = 0; i < 16; i++) {
      float x = w[16 * block + i];
      float magnitude = (float) Grid.E2M1_VALUES.value(Grid.E2M1_VALUES.nearest(Math.abs(x) / d)) * d;
      errors[i] = x < 0 ? x + magnitude : x - magnitude;
    }

    float[] terms = new float[16];
    int values = importance == null ? 0 : importance.length / (w.length / 160);
    int start = importance == null ? 0 : block * values % importance.length;
    boolean weighs = false;
    for (int i = start; i < start + values; i++) {
      weighs |= importance[i] != 0;
    }

    for (int i = 0; i < 16; i++) {
      if (!weighs) {
        terms[i] = errors[i] * errors[i];
      } else if (values == 16) {
        terms[i] = importance[start + i] * (errors[i] * errors[i]);
      } else {
        float[] row = new float[16];
        for (int j = 0; j < 16; j++) {
          row[j] = importance[start + 16 * i + j] * errors[j];
        }

        terms[i] = errors[i] * tree(row);
      }
    }

    return tree(terms);
  }

  private static float tree(float[] terms) {
    float[] a = new float[8];
    for (int i = 0; i < 8; i++) {
      a[i] = terms[i] + terms[i + 8];
    }

    return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7]));
  }
}
