package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;

/**
 * Activations {@code <module>.input} {@code [tokens, K]} as NVFP4: {@code <module>.input_packed} U8 {@code [tokens,
 * K/2]}, {@code <module>.input_scale} F8_E4M3 {@code [tokens, K/16]}, row after row, and {@code
 * <module>.input_global_scale} F32 [1], amax / 2688, which multiplies.
 */
public final class ActivationLayout implements Layout {
  private static final TensorNames NAMES =
      new TensorNames("input_packed", "input_scale", "input_global_scale", null, List.of(1L));

  @Override
  public String name() {
    return "activations";
  }

  @Override
  public Nvfp4Recipe recipe() {
    return Nvfp4Recipe.MODELOPT;
  }

  @Override
  public boolean batchesExperts() {
    return false;
  }

  @Override
  public List<UnitTensor> tensors(Unit unit, PlanOptions options) {
    return NAMES.of(unit, true);
  }

  @Override
  public List<CarriedTensor> carry(StoredWeight weight, StoredParts parts, ModelConfig config) {
    throw new IllegalArgumentException("Cannot carry " + weight.weight().name() + ": activations are not weights");
  }

  @Override
  public List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan) {
    return List.of();
  }
}
