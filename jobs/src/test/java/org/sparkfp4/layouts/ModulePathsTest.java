package org.sparkfp4.layouts;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.jobs.synthetic.SyntheticHeaders;
import org.sparkfp4.plan.ConfigFile;
import org.sparkfp4.plan.KeptModule;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Selection;
import org.sparkfp4.plan.ShardItem;
import org.sparkfp4.plan.SyntheticPlans;
import org.sparkfp4.plan.Unit;
import org.sparkfp4.safetensors.DType;

class ModulePathsTest {
  static Stream<Arguments> cases() {
    List<Arguments> cases = new ArrayList<>();
    for (String layout : List.of("modelopt", "compressed-tensors")) {
      for (boolean weightOnly : List.of(false, true)) {
        for (String targets : List.of("experts", "mlp", "linears")) {
          PlanOptions options = new PlanOptions(layout, "rtn", targets, weightOnly, 0);
          for (String family : SyntheticModel.FAMILIES) {
            boolean dense = List.of("llama", "mistral", "qwen2", "qwen3", "bert").contains(family);
            boolean stackedOnly = family.equals("gpt_oss") && layout.equals("compressed-tensors");
            boolean again = SyntheticHeaders.templates().contains(family) && (weightOnly || targets.equals("mlp"));
            if (!(dense && targets.equals("experts")) && !stackedOnly && !again) {
              // twelve layers: index 1 begins like 10
              cases.add(Arguments.of(new SyntheticModel(family).sizes(64, 32, 2, 12).fill(), family, options));
            }
          }

          cases.add(Arguments.of(vision(), "deepseek_v3 with vision", options));
        }

        PlanOptions linears = new PlanOptions(layout, "rtn", "linears", weightOnly, 0);
        cases.add(Arguments.of(new SyntheticModel("qwen2_moe").sizes(64, 40, 3, 3).fill(), "experts' K 40", linears));
        cases.add(Arguments.of(new SyntheticModel("bert").prefix("bert.").fill(), "bert.", linears));
      }
    }

    return cases.stream();
  }

  private static SyntheticModel vision() {
    SyntheticModel model = new SyntheticModel("deepseek_v3").prefix("language_model.").fill().prefix("");
    model.add("vision_tower.blocks.0.attn.wqkv.weight", 96, 32);
    model.add("vision_tower.patch_embed.proj.weight", 32, 3, 2, 2);
    return model.add("multi_modal_projector.linear_1.weight", 64, 32);
  }

  @ParameterizedTest(name = "{1}, {2}")
  @MethodSource("cases")
  void loadersAgreeWithThePlan(SyntheticModel model, String name, PlanOptions options) {
    QuantizationPlan plan = SyntheticPlans.of(model, options);
    List<String> quantized = quantized(plan);
    List<String> kept = plan.kept().stream().map(KeptModule::module).toList();
    Set<String> built = RuntimeModules.of(quantized);
    Set<String> builtHigh = RuntimeModules.of(kept);
    assertThat(built).doesNotContainAnyElementsOf(builtHigh);

    Map<String, LoaderRules> loaders = options.layout().equals("modelopt")
        ? Map.of(
            "vLLM", LoaderRules::vllmModelOpt,
            "SGLang", LoaderRules::sglang,
            "TensorRT-LLM", LoaderRules::tensorRtLlm)
        : Map.of("vLLM", LoaderRules::compressedTensors);
    for (List<String> entries : exclusions(model, plan)) {
      loaders.forEach((loader, rules) -> {
        assertThat(built).as(loader).noneMatch(module -> rules.isExcluded(module, entries));
        assertThat(quantized).as(loader).noneMatch(module -> rules.isExcluded(module, entries));
        assertThat(builtHigh).as(loader).allMatch(module -> rules.isExcluded(module, entries));
        assertThat(kept).as(loader).allMatch(module -> rules.isExcluded(module, entries));
      });
    }
  }

  /** Each module that a runtime builds is found in the precision that the plan gives it, fused ones too. */
  @ParameterizedTest
  @ValueSource(strings = {"experts", "mlp", "linears"})
  void loadersFindWhatStaysInTheSourcesPrecision(String targets) {
    SyntheticModel blocks = fp8(SyntheticModel.of("deepseek_v3"), false);
    QuantizationPlan grouped = SyntheticPlans.of(
        blocks, new PlanOptions("compressed-tensors", "rtn", targets, false, 0, Selection.ALL, true, null));
    JsonNode config = Layouts.named("compressed-tensors").configs(blocks.config(), grouped).get(0).content()
        .path("quantization_config");
    List<List<String>> groups = new ArrayList<>();
    config.path("config_groups").forEach(group -> groups.add(texts(group.path("targets"))));
    List<String> stored = stored(grouped);
    assertThat(groups).hasSize(2);
    assertThat(stored).isNotEmpty();
    assertThat(RuntimeModules.of(stored)).allMatch(module ->
        LoaderRules.compressedTensorsGroup(module, groups) == 1
            && !LoaderRules.compressedTensors(module, texts(config.path("ignore"))));
    assertThat(RuntimeModules.of(quantized(grouped))).allMatch(module ->
        LoaderRules.compressedTensorsGroup(module, groups) == 0
            && !LoaderRules.compressedTensors(module, texts(config.path("ignore"))));

    SyntheticModel tensors = fp8(SyntheticModel.of("qwen3_moe"), true);
    QuantizationPlan mixed = SyntheticPlans.of(
        tensors, new PlanOptions("modelopt", "rtn", targets, false, 0, Selection.ALL, true, null));
    if (!stored(mixed).isEmpty()) {
      Map<String, String> layers = new HashMap<>();
      Layouts.named("modelopt").configs(tensors.config(), mixed).get(0).content()
          .at("/quantization_config/quantized_layers").properties()
          .forEach(layer -> layers.put(layer.getKey(), layer.getValue().path("quant_algo").asText()));
      assertThat(RuntimeModules.of(stored(mixed)))
          .allMatch(module -> "FP8".equals(LoaderRules.modelOptAlgorithm(module, layers)));
      assertThat(RuntimeModules.of(quantized(mixed)))
          .allMatch(module -> "NVFP4".equals(LoaderRules.modelOptAlgorithm(module, layers)));
    }
  }

  /** Linear layers in FP8, with a scale a block, or one a tensor and one of the activations. */
  private static SyntheticModel fp8(SyntheticModel model, boolean perTensor) {
    for (LocatedTensor tensor : List.copyOf(model.tensors())) {
      String name = tensor.name();
      if (!name.endsWith("_proj.weight") && !name.endsWith("_mqa.weight")) {
        continue;
      }

      model.replace(name, DType.F8_E4M3, tensor.shape().get(0), tensor.shape().get(1)).dtype(DType.F32);
      if (perTensor) {
        model.add(name + "_scale").add(name.replace("weight", "input_scale"));
      } else {
        model.add(name + "_scale_inv", (tensor.shape().get(0) + 127) / 128, (tensor.shape().get(1) + 127) / 128);
      }
    }

    ObjectNode quantization = model.config().putObject("quantization_config").put("quant_method", "fp8");
    if (!perTensor) {
      quantization.putArray("weight_block_size").add(128).add(128);
    }

    return model;
  }

  private static List<String> stored(QuantizationPlan plan) {
    return plan.kept().stream().filter(kept -> kept.format() != null).map(KeptModule::module).toList();
  }

  private static List<String> texts(JsonNode array) {
    List<String> texts = new ArrayList<>();
    array.forEach(entry -> texts.add(entry.textValue()));
    return texts;
  }

  @Test
  void joinsWhatLiesBelowAPath() {
    SyntheticModel model = SyntheticModel.of("deepseek_v3");
    QuantizationPlan plan = SyntheticPlans.of(model, SyntheticPlans.modelOpt("experts"));

    assertThat(exclusions(model, plan).get(0)).containsExactly(
        "lm_head", "model.embed_tokens", "model.layers.0.*", "model.layers.1.mlp.gate",
        "model.layers.1.mlp.shared_experts*", "model.layers.1.self_attn*", "model.layers.2.mlp.gate",
        "model.layers.2.mlp.shared_experts*", "model.layers.2.self_attn*", "model.layers.3.*");
  }

  @Test
  void writesRegularExpressionsForCompressedTensors() {
    SyntheticModel model = SyntheticModel.of("mixtral");
    QuantizationPlan plan =
        SyntheticPlans.of(model, new PlanOptions("compressed-tensors", "rtn", "experts", false, 0));

    assertThat(exclusions(model, plan).get(0)).startsWith(
        "lm_head", "model.embed_tokens", "model.layers.0.block_sparse_moe.gate",
        "re:^model\\.layers\\.0\\.self_attn\\..*");
  }

  @Test
  void reachesNoModuleWhoseNameOnlyBeginsAlike() {
    QuantizationPlan plan = plan(
        List.of("layers.1.mlp.up", "layers.1.attn.q", "layers.2.shared.up", "layers.2.other.up"),
        List.of("layers.10.mlp.up", "layers.2.shared_two.up"));

    assertThat(new ModulePaths(plan).unquantized()).extracting(ModulePath::glob)
        .containsExactly("layers.1.*", "layers.2.other*", "layers.2.shared.*");
    assertThat(new ModulePaths(plan).unquantized()).extracting(ModulePath::nameOrRegex)
        .containsExactly("re:^layers\\.1\\..*", "re:^layers\\.2\\.other\\..*", "re:^layers\\.2\\.shared\\..*");
  }

  @Test
  void namesThatBeginWithADotKeepIt() {
    QuantizationPlan plan = plan(List.of(".a.up", "a.0"), List.of(".a.down", "a.1"));

    assertThat(new ModulePaths(plan).unquantized()).extracting(ModulePath::path).containsExactly(".a.up", "a.0");
  }

  /** A name of a hostile file: no stack of calls for its parts, nor a text for each. */
  @Test
  void nameOfVeryManyPartsCostsWhatItsLengthIs() {
    String deep = "a.".repeat(20_000);
    QuantizationPlan plan = plan(List.of(deep + "up"), List.of("a.up", deep + "down"));

    Hostile.read(2 * deep.length(), () ->
        assertThat(new ModulePaths(plan).unquantized()).extracting(ModulePath::path).containsExactly(deep + "up"));
  }

  private static QuantizationPlan plan(List<String> kept, List<String> quantized) {
    List<ShardItem> items = new ArrayList<>();
    for (String module : quantized) {
      LocatedTensor weight = new LocatedTensor(module + ".weight", DType.BF16, List.of(1L, 16L), "f", 0, 32);
      Unit unit = new Unit(items.size(), module, "BF16", 16, List.of(new Member(module, weight, null)));
      items.add(new ShardItem.Quantized(unit, List.of()));
    }

    return new QuantizationPlan(
        "", "", SyntheticPlans.modelOpt("mlp"), "", 1, List.of(), List.of(new OutputShard(0, "f", 0, items)),
        kept.stream().map(module -> new KeptModule(module, "")).toList(), List.of());
  }

  private static List<String> quantized(QuantizationPlan plan) {
    return plan.shards().stream()
        .flatMap(shard -> shard.units().stream())
        .flatMap(unit -> unit.members().stream())
        .map(member -> member.module())
        .toList();
  }

  /** The list of every file that has one. */
  private static List<List<String>> exclusions(SyntheticModel model, QuantizationPlan plan) {
    List<List<String>> lists = new ArrayList<>();
    for (ConfigFile file : Layouts.named(plan.options().layout()).configs(model.config(), plan)) {
      for (String place : List.of("/quantization_config/ignore", "/quantization/exclude_modules")) {
        JsonNode entries = file.content().at(place);
        if (entries.isArray()) {
          List<String> list = new ArrayList<>();
          entries.forEach(entry -> list.add(entry.textValue()));
          lists.add(list);
        }
      }
    }

    assertThat(lists).isNotEmpty();
    return lists;
  }
}
