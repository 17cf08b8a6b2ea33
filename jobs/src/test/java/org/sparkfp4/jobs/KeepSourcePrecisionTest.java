package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;
import static org.sparkfp4.jobs.Verified.verify;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.safetensors.DType;

/** What a source stores quantized, and a run does not quantize, kept as it is stored: through the whole job. */
class KeepSourcePrecisionTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String SHARD = "model-00001-of-00001.safetensors";
  private static final String O_PROJ = "model.layers.0.self_attn.o_proj";

  @TempDir
  private Path folder;

  @Test
  void fp8InBlocksGetsAConfigGroupAndTheNamesOfCompressedTensors() throws Exception {
    Path source = CheckpointFiles.golden("deepseek_v3_fp8");
    Path output = quantize(source, "output", "--layout", "compressed-tensors");

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    assertThat(after.keySet()).noneMatch(name -> name.endsWith("_inv"));
    assertSame(after.get(O_PROJ + ".weight"), before.get(O_PROJ + ".weight"));
    assertSame(after.get(O_PROJ + ".weight_scale"), before.get(O_PROJ + ".weight_scale_inv"));
    JsonNode config = quantization(output);
    assertThat(config.path("format").asText()).isEqualTo("mixed-precision");
    assertThat(config.at("/config_groups/group_0/targets").toString()).isEqualTo("[\"Linear\"]");
    ObjectNode group = (ObjectNode) config.at("/config_groups/group_1");
    assertThat(group.remove("targets").toString()).isEqualTo(
        "[\"re:^model\\\\.layers\\\\.0\\\\..*\",\"re:^model\\\\.layers\\\\.1\\\\.self_attn\\\\..*\"]");
    assertThat(group).isEqualTo(JSON.readTree("""
        {"format": "float-quantized",
         "weights": {"num_bits": 8, "type": "float", "symmetric": true, "strategy": "block",
           "block_structure": [128, 128], "dynamic": false},
         "input_activations": {"num_bits": 8, "type": "float", "symmetric": true, "strategy": "group",
           "group_size": 128, "dynamic": true},
         "output_activations": null}"""));
    assertVerified(source, output);
    assertThat(Files.readString(output.resolve("README.md")))
        .contains("stay as it stores them", "weights E4M3/F32/128x128", "precision of each layer in config.json")
        .doesNotContain("trtllm-serve");
  }

  @Test
  void aDryRunAndInspectSayWhatStays() {
    String source = CheckpointFiles.golden("deepseek_v3_fp8").toString();

    assertThat(new InProcess().run("quantize", "--input", source, "--output", folder.resolve("none").toString(),
        "--layout", "compressed-tensors", "--keep-source-precision", "--dry-run").out())
        .contains("as stored  5 weights E4M3/F32/128x128: in the source's precision, ");
    assertThat(new InProcess()
        .run("inspect", source, "--layout", "compressed-tensors", "--keep-source-precision").out())
        .containsPattern("attention +E4M3/F32/128x128 +as it is +latent attention");
    assertThat(new InProcess().run("inspect", source, "--keep-source-precision").out())
        .contains("problem       Cannot keep model.layers.0.");
  }

  /** What no expert of a layer is quantized of stays in the source's own words. */
  @ParameterizedTest
  @CsvSource({
    "kimi_k3_mxfp4, language_model.model.layers.2.block_sparse_moe.experts, mxfp4-pack-quantized",
    "kimi_k25_int4, language_model.model.layers.2.mlp.experts, pack-quantized"})
  void expertsOfExcludedLayersStay(String name, String experts, String format) throws Exception {
    Path source = name.endsWith("int4") ? twoLayersOfInt4() : CheckpointFiles.golden(name);
    Path output = quantize(source, "output", "--layout", "compressed-tensors", "--exclude", experts + ".*");

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    List<String> kept = before.keySet().stream().filter(tensor -> tensor.startsWith(experts)).toList();
    assertThat(kept).hasSizeGreaterThan(8);
    kept.forEach(tensor -> assertSame(after.get(tensor), before.get(tensor)));
    JsonNode group = quantization(output).at("/config_groups/group_1");
    assertThat(group.path("format").asText()).isEqualTo(format);
    assertThat(group.path("targets").toString()).contains("re:^" + experts.replace(".", "\\\\.") + "\\\\..*");
    assertThat(group.path("weights"))
        .isEqualTo(JSON.readTree(source.resolve("config.json").toFile())
            .at("/quantization_config/config_groups/group_0/weights"));
    assertVerified(source, output);
  }

  @Test
  void fp8WithOneScaleIsMixedPrecisionOfModelOpt() throws Exception {
    Path source = perTensor("\"activation_scheme\": \"static\"", true);
    Path output = quantize(source, "output");

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    for (String part : List.of(".weight", ".weight_scale", ".input_scale")) {
      assertSame(after.get(O_PROJ + part), before.get(O_PROJ + part));
    }

    JsonNode flat = quantization(output);
    JsonNode nested = JSON.readTree(output.resolve("hf_quant_config.json").toFile()).path("quantization");
    assertThat(flat.path("quant_algo").asText()).isEqualTo("MIXED_PRECISION");
    assertThat(flat.at("/quantized_layers/" + O_PROJ + "/quant_algo").asText()).isEqualTo("FP8");
    assertThat(flat.at("/quantized_layers/model.layers.1.mlp.experts").toString())
        .isEqualTo("{\"quant_algo\":\"NVFP4\",\"group_size\":16}");
    assertThat(nested.path("quantized_layers")).isEqualTo(flat.path("quantized_layers"));
    assertThat(nested.path("exclude_modules")).isEqualTo(flat.path("ignore"));
    assertThat(flat.path("ignore").toString()).doesNotContain("o_proj");
    assertVerified(source, output);
    assertThat(quantization(quantize(source, "weights", "--weight-only"))
        .at("/quantized_layers/model.layers.1.mlp.experts/quant_algo").asText()).isEqualTo("W4A16_NVFP4");
    assertVerified(source, folder.resolve("weights"));
    Path groups = quantize(source, "groups", "--layout", "compressed-tensors");
    assertThat(quantization(groups).at("/config_groups/group_1/input_activations").toString())
        .contains("\"strategy\":\"tensor\",\"dynamic\":false");
    assertVerified(source, groups);
  }

  @Test
  void mxfp8IsMixedPrecisionOfModelOpt() throws Exception {
    Path source = CheckpointFiles.golden("minimax_m3_mxfp8");
    Path output = quantize(source, "output");

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    String attention = "language_model.model.layers.1.self_attn.";
    assertSame(after.get(attention + "q_proj.weight"), before.get(attention + "q_proj.weight"));
    assertSame(after.get(attention + "q_proj.weight_scale"), before.get(attention + "q_proj.weight_scale_inv"));
    assertThat(after.keySet()).noneMatch(name -> name.endsWith("_inv"));
    JsonNode config = quantization(output);
    assertThat(config.path("quant_algo").asText()).isEqualTo("MIXED_PRECISION");
    JsonNode layers = config.path("quantized_layers");
    assertThat(layers.path(attention + "q_proj").toString()).isEqualTo("{\"quant_algo\":\"MXFP8\"}");
    assertThat(layers.at("/language_model.model.layers.1.block_sparse_moe.experts/quant_algo").asText())
        .isEqualTo("NVFP4");
    assertThat(layers.has(attention + "index_q_proj")).isFalse();
    assertThat(config.path("ignore").toString()).contains(attention + "index_", "vision_tower", "patch_merge_mlp");
    assertVerified(source, output);

    ((ObjectNode) layers.path(attention + "q_proj")).put("quant_algo", "FP8");
    ObjectNode changed = (ObjectNode) JSON.readTree(output.resolve("config.json").toFile());
    changed.set("quantization_config", config);
    Files.writeString(output.resolve("config.json"), changed.toString());
    assertThat(verify(source, output).out())
        .contains(attention + "q_proj is stored as in the source, E4M3 1x32, but by config.json it is [E4M3 *x* with");
    assertRefused(source, "groups", List.of("--layout", "compressed-tensors"),
        "E4M3/E8M0/1x32: layout compressed-tensors keeps no FP8 with E8M0 scales; layout modelopt keeps MXFP8");
  }

  @Test
  void deepSeekV4KeepsItsOwnConfig() throws Exception {
    Path source = v4();
    Path output = quantize(source, "output");

    Map<String, StoredTensor> before = CheckpointFiles.read(source);
    Map<String, StoredTensor> after = CheckpointFiles.read(output);
    for (String part : List.of(".weight", ".scale")) {
      assertSame(after.get("layers.1.attn.wo_b" + part), before.get("layers.1.attn.wo_b" + part));
      assertSame(after.get("mtp.0.ffn.experts.0.w1" + part), before.get("mtp.0.ffn.experts.0.w1" + part));
    }

    JsonNode config = JSON.readTree(output.resolve("config.json").toFile());
    assertThat(config.path("expert_dtype").asText()).isEqualTo("fp4");
    JsonNode quantization = config.path("quantization_config");
    assertThat(quantization.path("quant_method").asText()).isEqualTo("fp8");
    assertThat(quantization.path("moe_quant_algo").asText()).isEqualTo("NVFP4");
    assertThat(quantization.path("scale_fmt").asText()).isEqualTo("ue8m0");
    assertThat(quantization.path("ignore").toString()).contains("layers.1.attn*", "mtp*");
    assertThat(quantization.path("quantized_layers").size()).isEqualTo(2);
    assertVerified(source, output);

    assertRefused(source, "every layer of experts", List.of("--exclude", "layers.2.ffn.experts.*"),
        "Cannot keep the source's precision of DeepSeek V4 in layout modelopt: layers.2.ffn.experts.0.w1 is not to "
            + "become NVFP4 (excluded by layers.2.ffn.experts.*), but loaders take the experts of all layers for it");
    assertRefused(source, "activations", List.of("--weight-only"), "leave --weight-only out");
    assertRefused(source, "E8M0", List.of("--layout", "compressed-tensors"),
        "Cannot keep layers.1.attn.wo_b.weight (F8_E4M3 [256, 256], model.safetensors) as the source stores it, "
            + "E4M3/E8M0/128x128: layout compressed-tensors keeps no FP8 with E8M0 scales");
  }

  @Test
  void whatALayoutCannotSayIsAnErrorBeforeAnyWork() throws Exception {
    assertRefused(CheckpointFiles.golden("deepseek_v3_fp8"), "blocks in ModelOpt", List.of(),
        "E4M3/F32/128x128: layout modelopt keeps MXFP8, and FP8 that has one F32 scale and an F32 input_scale, and no other; "
            + "layout compressed-tensors keeps FP8 with scales in blocks or rows, INT4 and MXFP4; leave "
            + "--keep-source-precision out, and it becomes BF16");
    assertRefused(perTensor("\"activation_scheme\": \"static\"", false), "no scale of activations",
        List.of("--layout", "compressed-tensors"),
        "its activations have a static scale by config.json, but it has no input_scale");
    assertRefused(changed(
        "64x64", tensors -> tensors.replaceAll(
            (name, tensor) -> name.endsWith("_scale_inv") ? scales(tensors, name, 64) : tensor),
        "\"weight_block_size\": [64, 64],"), "other blocks", List.of("--layout", "compressed-tensors"),
        "runtimes have FP8 of compressed-tensors with a scale a tensor, a row or a block of 128 x 128");
    assertRefused(changed("one in BF16", tensors -> {
      String name = "model.layers.0.mlp.up_proj.weight";
      StoredTensor codes = tensors.get(name);
      tensors.remove(name + "_scale_inv");
      tensors.put(name, new StoredTensor(DType.BF16, codes.shape(), new byte[2 * codes.data().length]));
    }, "\"weight_block_size\": [128, 128],"), "fused", List.of("--layout", "compressed-tensors"),
        "Cannot keep the source's precision in model.layers.0.mlp: runtimes fuse its gate_proj, up_proj "
            + "into gate_up_proj, which has one, and the source stores them as E4M3/F32/128x128 and high precision");
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "/config_groups/group_1/weights|strategy|tensor|stored as in the source, E4M3 128x128, but by config.json it is [E4M"
        + "3 *x*]",
    "/config_groups/group_1|format|pack-quantized|but by config.json it is [INT4 128x128]",
    "|format|nvfp4-pack-quantized|config.json has format \"nvfp4-pack-quantized\", must be mixed-precision"})
  void verificationFindsAWrongConfig(String place, String key, String value, String difference) throws Exception {
    Path source = CheckpointFiles.golden("deepseek_v3_fp8");
    Path output = quantize(source, "output", "--layout", "compressed-tensors");
    JsonNode config = JSON.readTree(output.resolve("config.json").toFile());
    ((ObjectNode) config.at("/quantization_config" + (place == null ? "" : place))).put(key, value);
    Files.writeString(output.resolve("config.json"), config.toString());

    assertThat(verify(source, output).out()).contains(difference);
  }

  @Test
  void verificationFindsLayersThatNoGroupOrTheIgnoreListNames() throws Exception {
    Path source = CheckpointFiles.golden("deepseek_v3_fp8");
    Path output = quantize(source, "output", "--layout", "compressed-tensors");
    ObjectNode config = (ObjectNode) JSON.readTree(output.resolve("config.json").toFile());
    ((ObjectNode) config.at("/quantization_config/config_groups")).remove("group_1");
    Files.writeString(output.resolve("config.json"), config.toString());
    assertThat(verify(source, output).out()).contains(O_PROJ + " is stored as in the source, E4M3 128x128, but by "
        + "config.json it is not");

    ((ArrayNode) config.at("/quantization_config/ignore"))
        .add("re:^model\\.layers\\.0\\.self_attn\\..*");
    Files.writeString(output.resolve("config.json"), config.toString());
    assertThat(verify(source, output).out()).contains("config.json excludes it, as if it were in high precision");
  }

  @ParameterizedTest
  @CsvSource({".weight", ".weight_scale"})
  void verificationFindsAChangedByteAndAMissingTensor(String part) throws Exception {
    Path source = CheckpointFiles.golden("deepseek_v3_fp8");
    Path output = quantize(source, "output", "--layout", "compressed-tensors");
    Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
    tensors.get(O_PROJ + part).data()[1] ^= 1;
    write(output, tensors);
    assertThat(verify(source, output).out()).contains("is not as in the source", O_PROJ + part);

    tensors.remove(O_PROJ + part);
    write(output, tensors);
    assertThat(verify(source, output).out()).contains("Missing tensor " + O_PROJ + part);
  }

  @Test
  void theOptionChangesNothingOfASourceInHighPrecision() throws Exception {
    Path source = CheckpointFiles.golden("qwen3_moe_bf16");
    Path output = quantize(source, "output");

    assertThat(quantization(output).path("quant_algo").asText()).isEqualTo("NVFP4");
    assertVerified(source, output);
  }

  /** The golden checkpoint's FP8 with one scale a tensor. */
  private Path perTensor(String config, boolean inputScales) throws Exception {
    byte[] scale = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putFloat(0.0078125f).array();
    return changed("per tensor " + inputScales, tensors -> {
      for (String name : List.copyOf(tensors.keySet())) {
        if (name.endsWith(".weight_scale_inv")) {
          String module = name.substring(0, name.lastIndexOf('.'));
          tensors.remove(name);
          tensors.put(module + ".weight_scale", new StoredTensor(DType.F32, List.of(), scale));
          if (inputScales) {
            tensors.put(module + ".input_scale", new StoredTensor(DType.F32, List.of(), scale));
          }
        }
      }
    }, config + ",");
  }

  private static StoredTensor scales(Map<String, StoredTensor> tensors, String name, int block) {
    List<Long> shape = tensors.get(name.replace("_scale_inv", "")).shape();
    List<Long> blocks = shape.stream().map(side -> (side + block - 1) / block).toList();
    ByteBuffer data = ByteBuffer.allocate((int) (4 * blocks.get(0) * blocks.get(1))).order(ByteOrder.LITTLE_ENDIAN);
    while (data.hasRemaining()) {
      data.putFloat(0.0078125f);
    }

    return new StoredTensor(DType.F32, blocks, data.array());
  }

  private Path changed(String name, Consumer<Map<String, StoredTensor>> change, String config) throws Exception {
    Map<String, StoredTensor> tensors = new TreeMap<>(CheckpointFiles.read(CheckpointFiles.golden("deepseek_v3_fp8")));
    change.accept(tensors);
    return write(name, tensors, """
        {"model_type": "deepseek_v3", "hidden_size": 256, "moe_intermediate_size": 192, "n_routed_experts": 3,
         "num_hidden_layers": 2, "first_k_dense_replace": 1, "quantization_config": {%s "quant_method": "fp8"}}"""
        .formatted(config));
  }

  /** The golden checkpoint with its layer of experts twice. */
  private Path twoLayersOfInt4() throws Exception {
    Path golden = CheckpointFiles.golden("kimi_k25_int4");
    Map<String, StoredTensor> tensors = new TreeMap<>(CheckpointFiles.read(golden));
    Map<String, StoredTensor> more = new TreeMap<>();
    tensors.forEach((name, tensor) -> {
      if (name.contains(".layers.1.")) {
        more.put(name.replace(".layers.1.", ".layers.2."), tensor);
      }
    });
    tensors.putAll(more);
    JsonNode config = JSON.readTree(golden.resolve("config.json").toFile());
    ((ObjectNode) config.path("text_config")).put("num_hidden_layers", 3);
    return write("int4", tensors, config.toString());
  }

  private Path v4() throws Exception {
    Map<String, StoredTensor> tensors = new TreeMap<>();
    CheckpointFiles.read(CheckpointFiles.golden("kimi_k3_mxfp4")).forEach((name, tensor) -> {
      DType dtype = name.endsWith("_packed") ? DType.I8 : name.endsWith("_scale") ? DType.F8_E8M0 : tensor.dtype();
      String stored = name.replace("language_model.model.", "").replace("block_sparse_moe", "ffn")
          .replace("weight_packed", "weight").replace("weight_scale", "scale");
      tensors.put(stored, new StoredTensor(dtype, tensor.shape(), tensor.data()));
    });
    for (String part : List.of(".weight", ".scale")) {
      tensors.put("mtp.0.ffn.experts.0.w1" + part, tensors.get("layers.2.ffn.experts.0.w1" + part));
    }

    tensors.put("layers.1.attn.wo_b.weight",
        CheckpointFiles.read(CheckpointFiles.golden("deepseek_v3_fp8")).get(O_PROJ + ".weight"));
    tensors.put("layers.1.attn.wo_b.scale",
        new StoredTensor(DType.F8_E8M0, List.of(2L, 2L), new byte[] {120, 119, 118, 0}));
    return write("v4", tensors, """
        {"model_type": "deepseek_v4", "hidden_size": 128, "moe_intermediate_size": 96, "n_routed_experts": 3,
         "num_hidden_layers": 3, "first_k_dense_replace": 1, "expert_dtype": "fp4", "quantization_config":
         {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"}}""");
  }

  private Path write(String name, Map<String, StoredTensor> tensors, String config) throws Exception {
    Path source = Files.createDirectories(folder.resolve(name));
    CheckpointFiles.write(source.resolve("model.safetensors"), tensors);
    Files.writeString(source.resolve("config.json"), config);
    return source;
  }

  private static void write(Path output, Map<String, StoredTensor> tensors) throws Exception {
    CheckpointFiles.write(output.resolve(SHARD), tensors);
    CheckpointFiles.writeIndex(output, SHARD, tensors);
  }

  private Path quantize(Path source, String name, String... more) {
    SparkSubmitResult result = run(source, name, List.of(more));
    assertThat(result.status()).as(result.err()).isZero();
    return folder.resolve(name);
  }

  private SparkSubmitResult run(Path source, String name, List<String> more) {
    List<String> arguments = new ArrayList<>(List.of(
        "quantize", "--input", source.toString(), "--output", folder.resolve(name).toString(),
        "--keep-source-precision"));
    arguments.addAll(more);
    return new InProcess().run(arguments.toArray(new String[0]));
  }

  private void assertRefused(Path source, String name, List<String> more, String message) {
    SparkSubmitResult result = run(source, name, more);

    assertThat(result.status()).as(result.out()).isEqualTo(1);
    assertThat(result.err()).contains(message).hasLineCount(1);
    assertThat(folder.resolve(name)).doesNotExist();
  }

  private static JsonNode quantization(Path output) throws Exception {
    return JSON.readTree(output.resolve("config.json").toFile()).path("quantization_config");
  }

  private static void assertSame(StoredTensor actual, StoredTensor expected) {
    assertThat(actual.dtype()).isEqualTo(expected.dtype());
    assertThat(actual.data()).isEqualTo(expected.data());
    assertThat(actual.shape()).isEqualTo(expected.shape());
  }
}
