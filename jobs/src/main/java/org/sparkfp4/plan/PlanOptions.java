package org.sparkfp4.plan;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.util.Objects;
import org.sparkfp4.formats.ScaleSearch;

/**
 * The options of {@code quantize} that the output's bytes depend on.
 *
 * @param layout name of the layout: {@code modelopt}, {@code compressed-tensors} or, in the manifest of an output whose
 *     experts are stacked, that of an {@code ExpertLayout}
 * @param scaleSearch how block scales are chosen: a {@link ScaleSearch#optionName}, or {@link #GPTQ}
 * @param targets which layers: {@code experts}, {@code mlp} or {@code linears}
 * @param weightOnly whether activations stay in high precision (W4A16)
 * @param maxShardBytes largest output shard; 0 for the size that the checkpoint's own gives
 * @param selection which layers of the targets
 * @param keepSourcePrecision whether what the source stores quantized, and the plan does not quantize, stays stored so;
 *     else it becomes BF16
 * @param statistics how statistics of activations are used; null where there are none
 */
public record PlanOptions(
    String layout,
    String scaleSearch,
    String targets,
    boolean weightOnly,
    long maxShardBytes,
    Selection selection,
    boolean keepSourcePrecision,
    StatisticsOptions statistics) {
  /** The search whose codes make up for each other's errors, under the scales of a weighted search. */
  public static final String GPTQ = "gptq";

  public PlanOptions {
    Objects.requireNonNull(layout, "layout");
    Objects.requireNonNull(scaleSearch, "scaleSearch");
    Objects.requireNonNull(targets, "targets");
  }

  /** Options for all layers of the targets. */
  public PlanOptions(String layout, String scaleSearch, String targets, boolean weightOnly, long maxShardBytes) {
    this(layout, scaleSearch, targets, weightOnly, maxShardBytes, Selection.ALL, false, null);
  }

  /** How scales are chosen. */
  @JsonIgnore
  public ScaleSearch search() {
    return isGptq() ? ScaleSearch.WEIGHTED : ScaleSearch.named(scaleSearch);
  }

  /** Whether codes are GPTQ's where that is better. */
  @JsonIgnore
  public boolean isGptq() {
    return scaleSearch.equals(GPTQ);
  }

  /** The same options with another layout. */
  public PlanOptions withLayout(String other) {
    return new PlanOptions(
        other, scaleSearch, targets, weightOnly, maxShardBytes, selection, keepSourcePrecision, statistics);
  }
}
