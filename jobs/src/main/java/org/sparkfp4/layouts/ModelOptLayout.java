package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;

/**
 * NVIDIA Model Optimizer's unified checkpoint: {@code weight}, {@code weight_scale}, {@code weight_scale_2} (amax /
 * 2688) and {@code input_scale}; described by config.json (flat) and by hf_quant_config.json (nested; flat where only
 * weights are quantized), which say the same.
 */
final class ModelOptLayout implements Layout {
  static final String NAME = "modelopt";

  /** The producer whose form the files have. vLLM takes the nested form of no other. */
  private static final String PRODUCER = "modelopt";

  private static final String PRODUCER_VERSION = "0.40.0";
  private static final TensorNames NAMES =
      new TensorNames("weight", "weight_scale", "weight_scale_2", "input_scale", List.of());

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Nvfp4Recipe recipe() {
    return Nvfp4Recipe.MODELOPT;
  }

  @Override
  public boolean batchesExperts() {
    return true;
  }

  @Override
  public List<UnitTensor> tensors(Unit unit, PlanOptions options) {
    return NAMES.of(unit, options.weightOnly());
  }

  @Override
  public List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan) {
    boolean weightOnly = plan.options().weightOnly();
    List<String> exclusions = Exclusions.of(plan).stream().map(Exclusion::glob).toList();
    ObjectNode flat = flat(weightOnly, exclusions);
    // vLLM refuses W4A16_NVFP4 in the nested form
    return List.of(
        ConfigJson.with(sourceConfig, flat),
        new ConfigFile("hf_quant_config.json", weightOnly ? flat : nested(exclusions)));
  }

  private static ObjectNode flat(boolean weightOnly, List<String> exclusions) {
    ObjectNode config = ConfigJson.object();
    config.put("quant_method", "modelopt");
    config.put("quant_algo", weightOnly ? "W4A16_NVFP4" : "NVFP4");
    config.set("producer", producer());
    ObjectNode group = config.putObject("config_groups").putObject("group_0");
    if (!weightOnly) {
      group.set("input_activations", fp4());
    }

    group.set("weights", fp4());
    group.putArray("targets").add("Linear");
    addAll(config.putArray("ignore"), exclusions);
    return config;
  }

  private static ObjectNode nested(List<String> exclusions) {
    ObjectNode config = ConfigJson.object();
    config.set("producer", producer());
    ObjectNode quantization = config.putObject("quantization");
    quantization.put("quant_algo", "NVFP4");
    quantization.putNull("kv_cache_quant_algo");
    quantization.put("group_size", Nvfp4.BLOCK);
    addAll(quantization.putArray("exclude_modules"), exclusions);
    return config;
  }

  private static ObjectNode producer() {
    return ConfigJson.object().put("name", PRODUCER).put("version", PRODUCER_VERSION);
  }

  private static ObjectNode fp4() {
    return ConfigJson.object()
        .put("dynamic", false)
        .put("num_bits", 4)
        .put("type", "float")
        .put("group_size", Nvfp4.BLOCK);
  }

  private static void addAll(ArrayNode array, List<String> values) {
    values.forEach(array::add);
  }
}
