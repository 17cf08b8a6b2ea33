package org.sparkfp4.layouts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.KeptModule;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.SyntheticPlans;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.plan.UnitTensor;
import org.sparkfp4.plan.UnitTensor.Part;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.TensorInfo;

class LayoutsTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String GATE = "model.layers.1.mlp.experts.2.gate_proj.";
  private static final String UP = "model.layers.1.mlp.experts.2.up_proj.";

  @Test
  void knowsItsNames() {
    assertThat(Layouts.named("modelopt").recipe()).isEqualTo(Nvfp4Recipe.MODELOPT);
    assertThat(Layouts.named("compressed-tensors").recipe()).isEqualTo(Nvfp4Recipe.COMPRESSED_TENSORS);
    assertThatThrownBy(() -> Layouts.named("gguf"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid layout: gguf; known are modelopt, compressed-tensors, trt-edge-llm-sm110, trt-edge-llm-sm12x, "
            + "blackwell-moe, marlin-edge, marlin-vllm, cublas-128x4, scales-8x4, trtllm-gen");
  }

  @Test
  void modelOptNamesTensorsAsItsExportDoes() {
    List<UnitTensor> tensors = pair("modelopt", false);

    assertThat(tensors).extracting(UnitTensor::output).containsExactly(
        new TensorInfo(GATE + "weight_scale_2", DType.F32, List.of(), 0, 4),
        new TensorInfo(GATE + "input_scale", DType.F32, List.of(), 4, 8),
        new TensorInfo(UP + "weight_scale_2", DType.F32, List.of(), 8, 12),
        new TensorInfo(UP + "input_scale", DType.F32, List.of(), 12, 16),
        new TensorInfo(GATE + "weight", DType.U8, List.of(32L, 32L), 16, 1040),
        new TensorInfo(GATE + "weight_scale", DType.F8_E4M3, List.of(32L, 4L), 1040, 1168),
        new TensorInfo(UP + "weight", DType.U8, List.of(32L, 32L), 1168, 2192),
        new TensorInfo(UP + "weight_scale", DType.F8_E4M3, List.of(32L, 4L), 2192, 2320));
    assertThat(tensors).extracting(UnitTensor::member).containsExactly(0, 0, 1, 1, 0, 0, 1, 1);
    assertThat(tensors).extracting(UnitTensor::part).containsExactly(
        Part.GLOBAL_SCALE, Part.INPUT_SCALE, Part.GLOBAL_SCALE, Part.INPUT_SCALE, Part.PACKED, Part.SCALES,
        Part.PACKED, Part.SCALES);
  }

  @Test
  void compressedTensorsNamesTensorsAsItsCompressorDoes() {
    assertThat(pair("compressed-tensors", false)).extracting(UnitTensor::output).contains(
        new TensorInfo(GATE + "weight_global_scale", DType.F32, List.of(1L), 0, 4),
        new TensorInfo(GATE + "input_global_scale", DType.F32, List.of(1L), 4, 8),
        new TensorInfo(GATE + "weight_packed", DType.U8, List.of(32L, 32L), 16, 1040),
        new TensorInfo(GATE + "weight_scale", DType.F8_E4M3, List.of(32L, 4L), 1040, 1168));
  }

  @ParameterizedTest
  @CsvSource({"modelopt, weight_scale_2", "compressed-tensors, weight_global_scale"})
  void weightOnlyHasNoInputScale(String layout, String globalScale) {
    List<UnitTensor> tensors = pair(layout, true);

    assertThat(tensors).hasSize(6).noneMatch(tensor -> tensor.part() == Part.INPUT_SCALE);
    assertThat(tensors.get(0).output().name()).isEqualTo(GATE + globalScale);
    assertThat(tensors.get(5).output().end()).isEqualTo(8 + 2 * 1152);
  }

  @Test
  void modelOptWritesTwoConfigsThatAgree() throws Exception {
    List<ConfigFile> files = configs("modelopt", false);

    assertThat(files).extracting(ConfigFile::name).containsExactly("config.json", "hf_quant_config.json");
    JsonNode flat = files.get(0).content().path("quantization_config");
    JsonNode nested = files.get(1).content();
    JsonNode ignore = flat.path("ignore");
    assertThat(ignore).isNotEmpty();
    assertThat(flat).isEqualTo(JSON.readTree("""
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "producer": {"name": "modelopt", "version": "0.40.0"},
         "config_groups": {"group_0": {
           "input_activations": {"dynamic": false, "num_bits": 4, "type": "float", "group_size": 16},
           "weights": {"dynamic": false, "num_bits": 4, "type": "float", "group_size": 16},
           "targets": ["Linear"]}},
         "ignore": %s}""".formatted(ignore)));
    assertThat(nested).isEqualTo(JSON.readTree("""
        {"producer": {"name": "modelopt", "version": "0.40.0"},
         "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": null, "group_size": 16,
           "exclude_modules": %s}}""".formatted(ignore)));
  }

  @Test
  void modelOptMarksWeightOnly() {
    List<ConfigFile> files = configs("modelopt", true);

    JsonNode flat = files.get(0).content().path("quantization_config");
    assertThat(flat.path("quant_algo").asText()).isEqualTo("W4A16_NVFP4");
    assertThat(flat.at("/config_groups/group_0").has("input_activations")).isFalse();
    assertThat(files.get(1).content()).as("vLLM takes this algorithm in the flat form only").isEqualTo(flat);
  }

  @Test
  void compressedTensorsWritesItsConfig() throws Exception {
    List<ConfigFile> files = configs("compressed-tensors", false);

    assertThat(files).extracting(ConfigFile::name).containsExactly("config.json");
    JsonNode config = files.get(0).content().path("quantization_config");
    assertThat(config).isEqualTo(JSON.readTree("""
        {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "quantization_status": "compressed",
         "version": "0.15.0", "global_compression_ratio": null, "kv_cache_scheme": null, "transform_config": {},
         "ignore": %s,
         "config_groups": {"group_0": {
           "targets": ["Linear"], "format": "nvfp4-pack-quantized",
           "weights": {"num_bits": 4, "type": "float", "symmetric": true, "strategy": "tensor_group",
             "group_size": 16, "dynamic": false, "actorder": null, "block_structure": null,
             "observer": "memoryless_minmax", "observer_kwargs": {},
             "scale_dtype": "torch.float8_e4m3fn", "zp_dtype": "torch.float8_e4m3fn"},
           "input_activations": {"num_bits": 4, "type": "float", "symmetric": true, "strategy": "tensor_group",
             "group_size": 16, "dynamic": "local", "actorder": null, "block_structure": null,
             "observer": "static_minmax", "observer_kwargs": {},
             "scale_dtype": "torch.float8_e4m3fn", "zp_dtype": "torch.float8_e4m3fn"},
           "output_activations": null}}}""".formatted(config.path("ignore"))));
    assertThat(configs("compressed-tensors", true).get(0).content()
        .at("/quantization_config/config_groups/group_0/input_activations").isNull()).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"modelopt", "compressed-tensors"})
  void replacesWhatTheSourceSaysOfQuantization(String layout) {
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    QuantizationPlan plan = SyntheticPlans.of(model, new PlanOptions(layout, "rtn", "experts", false, 0));
    model.config().putObject("quantization_config").put("quant_method", "fp8");
    model.config().putObject("text_config").putObject("quantization_config").put("quant_method", "fp8");
    JsonNode before = model.config().deepCopy();

    JsonNode config = Layouts.named(layout).configs(model.config(), plan).get(0).content();

    assertThat(config.at("/quantization_config/quant_method").asText()).isEqualTo(layout);
    assertThat(config.path("text_config").has("quantization_config")).isFalse();
    assertThat(config.path("model_type").asText()).isEqualTo("qwen3_moe");
    assertThat((JsonNode) model.config()).isEqualTo(before);
  }

  @ParameterizedTest
  @CsvSource({"modelopt, false", "modelopt, true", "compressed-tensors, false", "compressed-tensors, true"})
  void everyQuantizedModuleHasAllItsTensorsAndNoKeptOneAny(String layout, boolean weightOnly) {
    QuantizationPlan plan = SyntheticPlans.of(
        SyntheticModel.of("glm4_moe"), new PlanOptions(layout, "rtn", "linears", weightOnly, 20_000));
    Map<String, String> files = new HashMap<>();
    JsonNode index = IndexFile.of(plan);
    index.path("weight_map").properties().forEach(entry -> files.put(entry.getKey(), entry.getValue().asText()));
    List<String> suffixes = layout.equals("modelopt")
        ? List.of(".weight", ".weight_scale", ".weight_scale_2", ".input_scale")
        : List.of(".weight_packed", ".weight_scale", ".weight_global_scale", ".input_global_scale");

    plan.shards().forEach(shard -> shard.units().forEach(unit -> unit.members().forEach(member -> {
      for (String suffix : suffixes) {
        boolean absent = weightOnly && suffix.startsWith(".input");
        assertThat(files.get(member.module() + suffix)).isEqualTo(absent ? null : shard.file());
      }
    })));
    for (KeptModule kept : plan.kept()) {
      assertThat(files).containsKey(kept.module() + ".weight")
          .doesNotContainKeys(kept.module() + ".weight_scale", kept.module() + suffixes.get(2));
    }

    long total = plan.shards().stream()
        .flatMap(shard -> shard.items().stream())
        .flatMap(item -> item.outputs().stream())
        .mapToLong(TensorInfo::length)
        .sum();
    assertThat(index.at("/metadata/total_size").asLong()).isEqualTo(total);
    assertThat(plan.shards()).hasSizeGreaterThan(1);
    assertThat(files).hasSize(plan.shards().stream()
        .flatMap(shard -> shard.items().stream())
        .mapToInt(item -> item.outputs().size())
        .sum());
  }

  private static List<UnitTensor> pair(String layout, boolean weightOnly) {
    PlanOptions options = new PlanOptions(layout, "rtn", "experts", weightOnly, 0);
    Unit unit = SyntheticPlans.of(SyntheticModel.of("qwen3_moe"), options).shards().get(0).units().stream()
        .filter(each -> each.name().equals("model.layers.1.mlp.experts.2.{gate_proj,up_proj}"))
        .findFirst()
        .orElseThrow();
    return Layouts.named(layout).tensors(unit, options);
  }

  private static List<ConfigFile> configs(String layout, boolean weightOnly) {
    SyntheticModel model = SyntheticModel.of("qwen3_moe");
    QuantizationPlan plan = SyntheticPlans.of(model, new PlanOptions(layout, "rtn", "experts", weightOnly, 0));
    return Layouts.named(layout).configs(model.config(), plan);
  }
}
