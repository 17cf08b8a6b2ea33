package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;

/**
 * NVIDIA Model Optimizer's unified checkpoint: {@code weight}, {@code weight_scale}, {@code weight_scale_2} (amax /
 * 2688) and {@code input_scale}; described by config.json (flat) and by hf_quant_config.json (nested; flat where only
 * weights are quantized), which say the same. What stays in the source's precision makes it one of
 * {@link MixedPrecision}, or, of DeepSeek V4, of {@link HybridFp8}.
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
  public List<CarriedTensor> carry(StoredWeight weight, StoredParts parts, ModelConfig config) {
    KeptWeight kept = new KeptWeight(weight, parts);
    return HybridFp8.reads(config) ? HybridFp8.carry(kept) : MixedPrecision.carry(kept);
  }

  @Override
  public List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan) {
    ModulePaths paths = new ModulePaths(plan);
    if (!plan.keptFormats().isEmpty()) {
      return HybridFp8.reads(new ModelConfig(sourceConfig))
          ? HybridFp8.configs(sourceConfig, plan, paths)
          : MixedPrecision.configs(sourceConfig, plan, paths);
    }

    boolean weightOnly = plan.options().weightOnly();
    List<String> exclusions = globs(paths.unquantized());
    ObjectNode flat = flat(weightOnly, exclusions);
    // vLLM refuses W4A16_NVFP4 in the nested form
    return List.of(
        ConfigJson.with(sourceConfig, flat),
        new ConfigFile(Checkpoint.QUANT_CONFIG, weightOnly ? flat : nested("NVFP4", exclusions)));
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

  /** Content of hf_quant_config.json in its own form. */
  static ObjectNode nested(String algorithm, List<String> exclusions) {
    ObjectNode config = ConfigJson.object();
    config.set("producer", producer());
    ObjectNode quantization = config.putObject("quantization");
    quantization.put("quant_algo", algorithm);
    quantization.putNull("kv_cache_quant_algo");
    quantization.put("group_size", Nvfp4.BLOCK);
    addAll(quantization.putArray("exclude_modules"), exclusions);
    return config;
  }

  static ObjectNode producer() {
    return ConfigJson.object().put("name", PRODUCER).put("version", PRODUCER_VERSION);
  }

  static List<String> globs(List<ModulePath> paths) {
    return paths.stream().map(ModulePath::glob).toList();
  }

  static void addAll(ArrayNode array, List<String> values) {
    values.forEach(array::add);
  }

  private static ObjectNode fp4() {
    return ConfigJson.object()
        .put("dynamic", false)
        .put("num_bits", 4)
        .put("type", "float")
        .put("group_size", Nvfp4.BLOCK);
  }
}
