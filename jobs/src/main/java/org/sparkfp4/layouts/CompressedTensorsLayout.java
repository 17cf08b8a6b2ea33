package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.CarriedTensor;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.KeptFormat;
import org.sparkfp4.plan.Layout;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;

/**
 * compressed-tensors' {@code nvfp4-pack-quantized}: {@code weight_packed}, {@code weight_scale},
 * {@code weight_global_scale} (about 2688 / amax) and {@code input_global_scale}; described by config.json alone. What
 * stays in the source's precision is described by further groups, whose targets are names.
 */
final class CompressedTensorsLayout implements Layout {
  static final String NAME = "compressed-tensors";

  private static final String FORMAT = "nvfp4-pack-quantized";
  private static final String MIXED = "mixed-precision";
  private static final String VERSION = "0.15.0";
  private static final TensorNames NAMES =
      new TensorNames("weight_packed", "weight_scale", "weight_global_scale", "input_global_scale", List.of(1L));

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public Nvfp4Recipe recipe() {
    return Nvfp4Recipe.COMPRESSED_TENSORS;
  }

  @Override
  public boolean batchesExperts() {
    return false;
  }

  @Override
  public List<UnitTensor> tensors(Unit unit, PlanOptions options) {
    return NAMES.of(unit, options.weightOnly());
  }

  @Override
  public List<CarriedTensor> carry(StoredWeight weight, StoredParts parts, ModelConfig config) {
    return new KeptGroups(config).carry(weight, parts);
  }

  @Override
  public List<ConfigFile> configs(ObjectNode sourceConfig, QuantizationPlan plan) {
    ModulePaths paths = new ModulePaths(plan);
    List<KeptFormat> formats = plan.keptFormats();
    ObjectNode config = ConfigJson.object();
    config.put("quant_method", "compressed-tensors");
    config.put("format", formats.isEmpty() ? FORMAT : MIXED);
    config.put("quantization_status", "compressed");
    config.put("version", VERSION);
    config.putNull("global_compression_ratio");
    config.putNull("kv_cache_scheme");
    config.putObject("transform_config");
    ArrayNode ignore = config.putArray("ignore");
    paths.highPrecision().forEach(path -> ignore.add(path.nameOrRegex()));
    ObjectNode groups = config.putObject("config_groups");
    ObjectNode group = groups.putObject("group_0");
    group.putArray("targets").add("Linear");
    group.put("format", FORMAT);
    group.set("weights", arguments("memoryless_minmax").put("dynamic", false));
    if (plan.options().weightOnly()) {
      group.putNull("input_activations");
    } else {
      group.set("input_activations", arguments("static_minmax").put("dynamic", "local"));
    }

    group.putNull("output_activations");
    if (!formats.isEmpty()) {
      // a loader looks for a module's name in all groups before it takes the group of its class, Linear
      KeptGroups kept = new KeptGroups(new ModelConfig(sourceConfig));
      for (KeptFormat format : formats) {
        ObjectNode added = kept.group(format);
        ArrayNode targets = added.putArray("targets");
        paths.kept(format).forEach(path -> targets.add(path.nameOrRegex()));
        groups.set("group_" + groups.size(), added);
      }
    }

    return List.of(ConfigJson.with(sourceConfig, config));
  }

  private static ObjectNode arguments(String observer) {
    ObjectNode arguments = ConfigJson.object()
        .put("num_bits", 4)
        .put("type", "float")
        .put("symmetric", true)
        .put("strategy", "tensor_group")
        .put("group_size", Nvfp4.BLOCK)
        .putNull("actorder")
        .putNull("block_structure")
        .put("observer", observer);
    arguments.putObject("observer_kwargs");
    return arguments.put("scale_dtype", "torch.float8_e4m3fn").put("zp_dtype", "torch.float8_e4m3fn");
  }
}
