package org.sparkfp4.verify;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.formats.ScaleSearch;

/**
 * Whether every global scale is the one that the largest weight of all layers that share it gives, and the same in all
 * of them: where fused layers differ, runtimes take one of the scales for all.
 */
final class GlobalScaleCheck {
  private static final float BFLOAT16_STEP = 0x1p-7f;

  private final Map<String, QuantizedLayer> layers;
  private final ScaleClaim claim;
  private final boolean exact;
  private final Differences differences;
  private final Map<String, LayerCheck> bySource = new HashMap<>();

  /**
   * @param layers all layers, by module
   * @param claim how scales were chosen
   * @param exact whether a difference of one unit in the last place counts: a checkpoint made on a GPU may have it
   */
  GlobalScaleCheck(Map<String, QuantizedLayer> layers, ScaleClaim claim, boolean exact, Differences differences) {
    this.layers = layers;
    this.claim = claim;
    this.exact = exact;
    this.differences = differences;
  }

  void check(List<LayerCheck> checks) {
    checks.forEach(check -> bySource.put(layers.get(check.module()).source().name(), check));
    checks.forEach(this::check);
  }

  private void check(LayerCheck check) {
    QuantizedLayer layer = layers.get(check.module());
    float amax = 0;
    for (SourceWeight sharer : layer.sharers()) {
      LayerCheck other = bySource.get(sharer.name());
      if (other == null) {
        // that layer's bytes are a difference already
        return;
      }

      amax = Math.max(amax, other.amax());
      checkShared(layer, check, other);
    }

    ScaleSearch search = claim.search(layer.source(), layer.scheme().recipe(), amax, check.globalScale());
    float expected = layer.source().globalScale(layer.scheme().recipe(), search, amax);
    if (!isExpected(check.globalScale(), expected)) {
      differences.add("Tensor " + layer.globalScale().name() + " (" + layer.globalScale().file() + ") is "
          + check.globalScale() + ", but the largest weight, " + amax + ", makes it " + expected);
    }
  }

  /** A conversion keeps the scale of the arithmetic that it came from: rounded to bfloat16 in one of them. */
  private boolean isExpected(float stored, float expected) {
    if (claim.isMoved()) {
      return Math.abs(stored - expected) <= expected * BFLOAT16_STEP;
    }

    return exact ? stored == expected : isNear(stored, expected);
  }

  /** Each pair is looked at once. */
  private void checkShared(QuantizedLayer layer, LayerCheck check, LayerCheck other) {
    if (check.module().compareTo(other.module()) >= 0) {
      return;
    }

    if (check.globalScale() != other.globalScale()) {
      differences.add("Tensors " + layer.globalScale().name() + " and "
          + layer.scheme().globalScale(other.module(), layer.isStacked()) + " are " + check.globalScale() + " and " + other.globalScale()
          + ", though runtimes fuse the layers under one scale");
    }

    if (Float.compare(check.inputScale(), other.inputScale()) != 0) {
      differences.add("Tensors " + layer.scheme().inputScale(check.module(), layer.isStacked()) + " and "
          + layer.scheme().inputScale(other.module(), layer.isStacked()) + " are " + check.inputScale() + " and "
          + other.inputScale() + ", though runtimes fuse the layers under one scale");
    }
  }

  /** Whether two positive scales are at most one unit in the last place apart. */
  static boolean isNear(float scale, float expected) {
    return Math.abs(Float.floatToIntBits(scale) - Float.floatToIntBits(expected)) <= 1;
  }
}
