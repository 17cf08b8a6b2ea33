package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** Names of tensors, and configurations that say something else than the tensors. */
class KnownConfigFailuresTest extends KnownFailures {
  @ParameterizedTest
  @EnumSource(value = SyntheticFamily.class, names = {"QWEN3_MOE", "MIXTRAL", "QWEN2_MOE", "LFM2_MOE", "JAMBA"})
  void routersStayAndAreListed(SyntheticFamily family) throws Exception {
    Path source = synthesize(family, SHAPE);
    Path output = quantize(source);

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    List<String> routers = before.keySet().stream()
        .filter(name -> name.matches(
            ".*(mlp|block_sparse_moe|feed_forward)\\.(gate|router|shared_expert_gate)\\.weight"))
        .toList();
    assertThat(routers).isNotEmpty().allSatisfy(router -> {
      assertThat(after.get(router).data()).isEqualTo(before.get(router).data());
      assertThat(isExcluded(output, router.replace(".weight", ""))).isTrue();
    });
  }

  @Test
  void aQueryWithAnOutputGateStays() throws Exception {
    Path output = quantize(synthesize(SyntheticFamily.QWEN3_NEXT, SHAPE), "--targets", "linears");

    assertThat(CheckpointFiles.read(output).get("model.layers.1.self_attn.q_proj.weight").dtype())
        .isEqualTo(DType.BF16);
    assertThat(isExcluded(output, "model.layers.1.self_attn.q_proj")).isTrue();
    assertThat(isExcluded(output, "model.layers.1.self_attn.o_proj")).isFalse();
  }

  @Test
  void layersThatPredictFurtherTokensAreCarriedOverAndListed() throws Exception {
    Path source = synthesize(SyntheticFamily.GLM5, new ModelShape(4, 3, 128, 64, 96));
    Path output = quantize(source, "--targets", "linears");

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    List<String> mtp = before.keySet().stream().filter(name -> name.startsWith("model.layers.4.")).toList();
    assertThat(mtp).hasSizeGreaterThan(15).allSatisfy(name ->
        assertThat(after.get(name).data()).isEqualTo(before.get(name).data()));
    assertThat(isExcluded(output, "model.layers.4.mlp.experts.0.gate_proj")).isTrue();
    assertThat(isExcluded(output, "model.layers.3.mlp.experts.0.gate_proj")).isFalse();
  }

  @Test
  void onePrecisionIsClaimedWhereTheSourceHasSeveral() throws Exception {
    Path output = quantize(synthesize(SyntheticFamily.DEEPSEEK_V4, SHAPE));

    Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
    assertThat(tensors.get("mtp.0.ffn.experts.0.w1.weight").dtype()).isEqualTo(DType.BF16);
    assertThat(tensors.get("layers.0.ffn.experts.0.w1.weight").dtype()).as("I8 would be taken for MXFP4")
        .isEqualTo(DType.U8);
    assertThat(isExcluded(output, "mtp.0.ffn.experts.0.w1")).isTrue();
    JsonNode config = config(output).path("quantization_config");
    assertThat(config.path("quant_algo").asText()).isEqualTo("NVFP4");
    assertThat(config(output).has("expert_dtype")).as("the source's type of experts").isFalse();
  }

  @ParameterizedTest
  @CsvSource({
    "model.layers.0.mlp.gate, , is in high precision",
    ", model.layers.0.mlp.experts*, is quantized, but",
    ", lm_head2, differ in the quantization"
  })
  void configAndTensorsDisagreeingIsFound(String removed, String added, String difference) throws Exception {
    Path source = synthesize(SyntheticFamily.QWEN3_MOE, SHAPE);
    Path output = quantize(source);
    ObjectNode config = config(output);
    ArrayNode ignore = (ArrayNode) config.path("quantization_config").path("ignore");
    List<String> entries = new ArrayList<>();
    ignore.forEach(entry -> entries.add(entry.asText()));
    if (removed != null) {
      assertThat(entries.remove(removed)).isTrue();
    } else {
      entries.add(added);
    }

    ignore.removeAll();
    entries.forEach(ignore::add);
    Files.write(output.resolve("config.json"), JSON.writeValueAsBytes(config));

    assertThat(verify(source, output)).contains(difference);
  }

  @Test
  void bothConfigsSayTheSame() throws Exception {
    Path output = quantize(synthesize(SyntheticFamily.GLM4_MOE, SHAPE));

    JsonNode nested = JSON.readTree(output.resolve("hf_quant_config.json").toFile()).path("quantization");
    JsonNode flat = config(output).path("quantization_config");
    assertThat(nested.path("exclude_modules")).isEqualTo(flat.path("ignore"));
    assertThat(nested.path("quant_algo")).isEqualTo(flat.path("quant_algo"));
  }

  @Test
  void theExpertsOfOneLayerAreExcluded() throws Exception {
    Path output =
        quantize(synthesize(SyntheticFamily.QWEN3_MOE, SHAPE), "--exclude", "model.layers.1.mlp.experts*");

    assertThat(isExcluded(output, "model.layers.1.mlp.experts")).isTrue();
    assertThat(isExcluded(output, "model.layers.0.mlp.experts")).isFalse();
    assertThat(CheckpointFiles.read(output).keySet())
        .contains("model.layers.0.mlp.experts.0.up_proj.weight_scale")
        .doesNotContain("model.layers.1.mlp.experts.0.up_proj.weight_scale");
  }

  @Test
  void noNameChangesAndNoTensorIsAddedOrLost() throws Exception {
    Path source = synthesize(SyntheticFamily.QWEN2_MOE, SHAPE);
    Map<String, StoredTensor> output = CheckpointFiles.read(quantize(source));

    Set<String> plain = output.keySet().stream()
        .filter(name -> !name.matches(".*\\.(weight_scale|weight_scale_2|input_scale)"))
        .collect(Collectors.toSet());
    assertThat(plain).isEqualTo(CheckpointFiles.read(source).keySet());
  }

  @Test
  void theOutputHasTheSizeThatWasPredicted() throws Exception {
    Path source = synthesize(SyntheticFamily.KIMI_K25, SHAPE);
    SparkSubmitResult inspected = run("inspect", "--json", source.toString());
    long predicted = JSON.readTree(inspected.out()).path("plan").path("bytesOut").asLong();

    Map<String, StoredTensor> output = CheckpointFiles.read(quantize(source));

    assertThat(output.values().stream().mapToLong(tensor -> tensor.data().length).sum()).isEqualTo(predicted);
  }

  @Test
  void weightsAloneAreMarkedAsSuch() throws Exception {
    Path output = quantize(synthesize(SyntheticFamily.QWEN3_MOE, SHAPE), "--weight-only");

    assertThat(CheckpointFiles.read(output).keySet()).noneMatch(name -> name.endsWith("input_scale"));
    JsonNode config = config(output).path("quantization_config");
    assertThat(config.path("quant_algo").asText()).isEqualTo("W4A16_NVFP4");
    assertThat(config.at("/config_groups/group_0").has("input_activations")).isFalse();
  }

  @Test
  void noScaleOfTheCacheIsClaimedOrWritten() throws Exception {
    Path output = quantize(synthesize(SyntheticFamily.QWEN3_MOE, SHAPE));

    assertThat(CheckpointFiles.read(output).keySet()).noneMatch(name -> name.matches(".*\\.[kv]_scale"));
    assertThat(JSON.readTree(output.resolve("hf_quant_config.json").toFile())
        .at("/quantization/kv_cache_quant_algo").isNull()).isTrue();
  }

  @Test
  void scalesHaveOneFormAndNoPartIsUnknown() throws Exception {
    Map<String, StoredTensor> output = CheckpointFiles.read(quantize(synthesize(SyntheticFamily.OLMOE, SHAPE)));

    output.forEach((name, tensor) -> {
      if (name.contains(".experts.") && name.endsWith(".weight_scale")) {
        List<Long> packed = output.get(name.replace("_scale", "")).shape();
        assertThat(tensor.dtype()).isEqualTo(DType.F8_E4M3);
        assertThat(tensor.shape()).containsExactly(packed.get(0), packed.get(1) / 8);
      } else if (name.contains(".experts.")) {
        assertThat(name).matches(".*\\.(weight|weight_scale_2|input_scale)");
      }
    });
  }

  /** By shell patterns, as loaders of ModelOpt's layout match them. */
  private static boolean isExcluded(Path output, String module) throws IOException {
    for (JsonNode entry : config(output).path("quantization_config").path("ignore")) {
      if (module.matches(entry.asText().replace(".", "\\.").replace("*", ".*"))) {
        return true;
      }
    }

    return false;
  }
}
