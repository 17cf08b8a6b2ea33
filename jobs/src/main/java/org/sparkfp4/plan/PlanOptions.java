package org.sparkfp4.plan;

/**
 * The options of {@code quantize} that the output's bytes depend on.
 *
 * @param layout name of the layout: {@code modelopt} or {@code compressed-tensors}
 * @param scaleSearch how block scales are chosen: a {@link org.sparkfp4.formats.ScaleSearch#optionName}
 * @param targets which layers: {@code experts}, {@code mlp} or {@code linears}
 * @param weightOnly whether activations stay in high precision (W4A16)
 * @param maxShardBytes largest output shard; 0 for the size that the checkpoint's own gives
 * @param selection which layers of the targets
 */
public record PlanOptions(
    String layout, String scaleSearch, String targets, boolean weightOnly, long maxShardBytes, Selection selection) {
  /** Options for all layers of the targets. */
  public PlanOptions(String layout, String scaleSearch, String targets, boolean weightOnly, long maxShardBytes) {
    this(layout, scaleSearch, targets, weightOnly, maxShardBytes, Selection.ALL);
  }

  /** The same options with another selection. */
  public PlanOptions withSelection(Selection other) {
    return new PlanOptions(layout, scaleSearch, targets, weightOnly, maxShardBytes, other);
  }
}
