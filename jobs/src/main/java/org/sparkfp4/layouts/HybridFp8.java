package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.QuantizationPlan;

/**
 * DeepSeek V4 with NVFP4 experts, as NVIDIA publishes it: the source's own FP8 config with {@code moe_quant_algo}. All
 * but the routed experts stays under the source's names, for loaders that know the model.
 */
final class HybridFp8 {
  private static final String MODEL_TYPE = "deepseek_v4";

  private HybridFp8() {}

  /** Whether loaders read a model in this form. */
  static boolean reads(ModelConfig config) {
    return config.modelTypes().contains(MODEL_TYPE)
        && config.quantization().path("quant_method").asText().equals("fp8");
  }

  /** See {@link Layout#carry}. */
  static List<CarriedTensor> carry(KeptWeight kept) {
    return kept.unchanged();
  }

  /** See {@link Layout#configs}. */
  static List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan, ModulePaths paths) {
    require(!plan.options().weightOnly(), "loaders of such checkpoints quantize the experts' activations; leave "
        + "--weight-only out");
    for (String module : QuantizedModules.of(plan)) {
      require(QuantizedModules.areExperts(module), module + " is to become NVFP4, which loaders of such checkpoints"
          + " take for FP8; choose --targets experts");
    }

    plan.kept().stream()
        .filter(kept -> kept.format() != null && QuantizedModules.areExperts(QuantizedModules.name(kept.module())))
        .filter(kept -> kept.module().startsWith("layers."))
        .findFirst()
        .ifPresent(kept -> require(false, kept.module() + " is not to become NVFP4 (" + kept.reason() + "), but"
            + " loaders take the experts of all layers for it; choose all of them"));

    List<String> exclusions = ModelOptLayout.globs(paths.unquantized());
    ObjectNode layers = ConfigJson.object();
    QuantizedModules.of(plan).forEach(
        module -> layers.putObject(module).put("quant_algo", "NVFP4").put("group_size", Nvfp4.BLOCK));
    ObjectNode config = (ObjectNode) new ModelConfig(sourceConfig).quantization().deepCopy();
    config.put("quant_algo", "MIXED_PRECISION");
    config.put("moe_quant_algo", "NVFP4");
    config.put("group_size", Nvfp4.BLOCK);
    config.set("producer", ModelOptLayout.producer());
    ModelOptLayout.addAll(config.putArray("ignore"), exclusions);
    config.set("quantized_layers", layers);
    ObjectNode nested = ModelOptLayout.nested("MIXED_PRECISION", exclusions);
    ((ObjectNode) nested.path("quantization")).set("quantized_layers", layers);
    return List.of(
        ConfigJson.withStorage(sourceConfig, config), new ConfigFile(Checkpoint.QUANT_CONFIG, nested));
  }

  private static void require(boolean condition, String why) {
    if (!condition) {
      throw new IllegalArgumentException("Cannot keep the source's precision of DeepSeek V4 in layout modelopt: " + why
          + ", or leave --keep-source-precision out");
    }
  }
}
