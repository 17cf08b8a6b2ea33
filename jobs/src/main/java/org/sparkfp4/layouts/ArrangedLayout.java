package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;

/**
 * ModelOpt's layout on the way to one whose routed experts are arranged for a runtime, see {@link ExpertLayout}: the same
 * bytes, an expert's matrices apart, with nothing in the source's precision.
 */
final class ArrangedLayout implements Layout {
  private final ExpertLayout target;
  private final Layout made = new ModelOptLayout();

  ArrangedLayout(ExpertLayout target) {
    this.target = target;
  }

  @Override
  public String name() {
    return target.optionName();
  }

  @Override
  public Nvfp4Recipe recipe() {
    return made.recipe();
  }

  @Override
  public boolean batchesExperts() {
    return false;
  }

  @Override
  public List<UnitTensor> tensors(Unit unit, PlanOptions options) {
    return made.tensors(unit, options);
  }

  @Override
  public List<CarriedTensor> carry(StoredWeight weight, StoredParts parts, ModelConfig config) {
    throw new IllegalArgumentException("Cannot keep " + weight.weight().name() + " as the source stores it in layout "
        + name() + ": its runtimes read no such weights; leave --keep-source-precision out, and it becomes BF16");
  }

  @Override
  public List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan) {
    return made.configs(sourceConfig, plan);
  }
}
