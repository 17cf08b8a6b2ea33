package org.sparkfp4.plan;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Nvfp4Recipe;

/** What a plan asks of a runtime's format: how its checkpoints name, shape and describe NVFP4 layers. */
public interface Layout {
  /** The name that {@code --layout} takes. */
  String name();

  /** Whose arithmetic makes the bytes. */
  Nvfp4Recipe recipe();

  /** Whether experts that a source stacks in one tensor stay so for runtimes that want them so. */
  boolean batchesExperts();

  /**
   * The tensors that a unit becomes, in the order of their bytes: the scalars of all members, since those need
   * alignment, then member by member the codes and behind them the block scales. Places ({@code begin}, {@code end})
   * count from the unit's first byte.
   */
  List<UnitTensor> tensors(Unit unit, PlanOptions options);

  /**
   * The tensors of a weight that stays as the source stores it, under the names by which runtimes look for them.
   *
   * @param parts what the source stores of it
   * @param config the source's
   * @throws IllegalArgumentException if the layout's configuration cannot say how the weight is stored
   */
  List<CarriedTensor> carry(StoredWeight weight, StoredParts parts, ModelConfig config);

  /**
   * The JSON files that the layout writes beside the shards, from the source's config.json and the plan.
   *
   * @throws IllegalArgumentException if they cannot say what the plan keeps in the source's precision
   */
  List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan);
}
