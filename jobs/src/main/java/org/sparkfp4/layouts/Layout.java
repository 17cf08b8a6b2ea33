package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;

/** How a runtime's checkpoints name, shape and describe NVFP4 layers. */
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

  /** The JSON files that the layout writes beside the shards, from the source's config.json and the plan. */
  List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan);
}
