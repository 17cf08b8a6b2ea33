package org.sparkfp4.formats;

/** Both recipes once more, worded as the producers' rules are and rounding by search: slow, and with nothing shared. */
final class PlainNvfp4 {
  private final Nvfp4Recipe recipe;
  private final ElementType type;
  private final float globalScale;

  PlainNvfp4(Nvfp4Recipe recipe, ElementType type, float amax) {
    this.recipe = recipe;
    this.type = type;
    this.globalScale = recipe == Nvfp4Recipe.MODELOPT ? amax / 2688f : bf16(bf16(1f / amax) * 2688f);
  }

  float globalScale() {
    return globalScale;
  }

  int scale(float blockAmax) {
    if (recipe == Nvfp4Recipe.MODELOPT) {
      float r = blockAmax / (6f * globalScale);
      r = r == 0 ? 1f : r;
      return Grid.E4M3_VALUES.nearest(Math.min(448f, Math.max(0x1p-9f, r)));
    }

    int scale = Grid.E4M3_VALUES.nearest(Math.min(448f, globalScale * bf16(blockAmax / 6f)));
    return scale == 0 ? 0x20 : scale;
  }

  float factor(int scale) {
    float s = (float) Grid.E4M3_VALUES.value(scale);
    return recipe == Nvfp4Recipe.MODELOPT ? s * globalScale : s / globalScale;
  }

  int code(float w, int scale) {
    float x = w / factor(scale);
    return (x < 0 ? 8 : 0) | Grid.E2M1_VALUES.nearest(Math.abs(x));
  }

  /** To nearest even, in the plain decimal way: of the two neighbours the nearer, of equally near ones the even. */
  private float bf16(float x) {
    if (type != ElementType.BF16) {
      return x;
    }

    int bits = Float.floatToRawIntBits(x);
    float below = Float.intBitsToFloat(bits & 0xFFFF_0000);
    float above = Float.intBitsToFloat((bits & 0xFFFF_0000) + 0x1_0000);
    double closer = ((double) above - x) - ((double) x - below);
    return closer > 0 || closer == 0 && (bits & 0x1_0000) == 0 ? below : above;
  }
}
