package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.E8M0;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** What broke for others who did this job, a test a kind of failure. */
class KnownFailuresTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String SHARD = "model-00001-of-00001.safetensors";
  private static final ModelShape SHAPE = new ModelShape(2, 3, 128, 64, 96);

  @TempDir
  private Path folder;

  @Nested
  class Scales {
    @Test
    void anExpertWithoutStatisticsHasAPositiveInputScale() throws Exception {
      Map<String, StoredTensor> output = CheckpointFiles.read(quantize(synthesize(SyntheticFamily.QWEN3_MOE, SHAPE)));

      List<String> scales = output.keySet().stream().filter(name -> name.endsWith(".input_scale")).toList();
      assertThat(scales).hasSize(2 * 3 * 3).allMatch(name -> scalar(output, name) == 1f);
    }

    @Test
    void gateAndUpInDifferentShardsShareOneGlobalScale() throws Exception {
      Path source = CheckpointFiles.golden("qwen3_moe_bf16");
      JsonNode files = JSON.readTree(source.resolve("model.safetensors.index.json").toFile()).path("weight_map");
      String expert = "model.layers.0.mlp.experts.0.";
      assertThat(files.path(expert + "gate_proj.weight")).isNotEqualTo(files.path(expert + "up_proj.weight"));

      Map<String, StoredTensor> output = CheckpointFiles.read(quantize(source));

      float amax = Math.max(
          amax(CheckpointFiles.read(source).get(expert + "gate_proj.weight")),
          amax(CheckpointFiles.read(source).get(expert + "up_proj.weight")));
      assertThat(scalar(output, expert + "gate_proj.weight_scale_2")).isEqualTo(amax / 2688f);
      assertThat(scalar(output, expert + "up_proj.weight_scale_2")).isEqualTo(amax / 2688f);
    }

    @Test
    void aTinyTensorWithABlockOfZerosHasNoScaleThatIsNaN() throws Exception {
      Path source = rewrite(synthesize(SyntheticFamily.QWEN3_MOE, SHAPE), tensors ->
          replaced(tensors, "model.layers.0.mlp.experts.1.down_proj.weight", KnownFailuresTest::tinyWithZeros));

      Map<String, StoredTensor> output = CheckpointFiles.read(quantize(source));

      output.forEach((name, tensor) -> {
        if (name.endsWith(".weight_scale")) {
          for (byte scale : tensor.data()) {
            assertThat(scale & 0x7F).as(name).isNotEqualTo(0x7F);
          }
        }
      });
    }

    @Test
    void verificationLooksAtEveryScaleByte() throws Exception {
      Path source = synthesize(SyntheticFamily.QWEN3_MOE, SHAPE);
      String name = "model.layers.1.mlp.experts.2.up_proj.weight_scale";
      Path output = rewrite(quantize(source), tensors -> replaced(tensors, name, tensor -> {
        byte[] data = tensor.data().clone();
        data[data.length - 1] = 0x7F;
        return new StoredTensor(tensor.dtype(), tensor.shape(), data);
      }));

      assertThat(verify(source, output)).contains(name).contains("NaN");
    }
  }

  @Nested
  class NamesAndConfigs {
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
  }

  @Nested
  class Sources {
    @ParameterizedTest
    @CsvSource({
      "DEEPSEEK_V32, model.layers.3.mlp.experts.0.up_proj.weight, weight_scale_inv",
      "DEEPSEEK_V32, model.layers.0.self_attn.o_proj.weight, weight_scale_inv",
      "DEEPSEEK_V4, layers.0.attn.wo_b.weight, scale",
      "DEEPSEEK_V4, layers.1.ffn.experts.2.w3.weight, scale"
    })
    void codesWithoutAScaleAreRefused(SyntheticFamily family, String weight, String scale) throws Exception {
      Path source = rewrite(synthesize(family, new ModelShape(4, 3, 128, 64, 96)), tensors -> {
        Map<String, StoredTensor> less = new LinkedHashMap<>(tensors);
        assertThat(less.remove(weight.replaceAll("weight$", scale))).isNotNull();
        return less;
      });

      SparkSubmitResult result =
          run("quantize", "--input", source.toString(), "--output", folder.resolve("output").toString());

      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err()).startsWith("Cannot read " + weight).contains("it has no scale").hasLineCount(1);
    }

    @ParameterizedTest
    @ValueSource(strings = {"U8", "F32"})
    void aPowerOfTwoIsTheSameInEveryTypeOfScale(String type) throws Exception {
      Path source = synthesize(SyntheticFamily.DEEPSEEK_V4, SHAPE);
      Map<String, StoredTensor> expected = CheckpointFiles.read(quantize(source));
      // FP8 may have scales of each type; those of MXFP4 are bytes
      Path other = rewrite(source, tensors -> {
        Map<String, StoredTensor> changed = new LinkedHashMap<>(tensors);
        changed.replaceAll((name, tensor) -> {
          boolean mxfp4 = name.contains(".experts.");
          return tensor.dtype() != DType.F8_E8M0 || (mxfp4 && type.equals("F32")) ? tensor : scales(tensor, type);
        });
        return changed;
      });

      Map<String, StoredTensor> actual = CheckpointFiles.read(quantize(other));

      assertThat(actual.keySet()).isEqualTo(expected.keySet());
      expected.forEach((name, tensor) -> assertThat(actual.get(name).data()).as(name).isEqualTo(tensor.data()));
    }

    @Test
    void blocksAtTheEdgesArePartial() throws Exception {
      // 208 and 144 are one block of 128 and a part of another
      Path source = synthesize(SyntheticFamily.DEEPSEEK_V32, new ModelShape(4, 2, 208, 144, 96));
      assertThat(CheckpointFiles.read(source).get("model.layers.3.mlp.experts.0.up_proj.weight_scale_inv").shape())
          .containsExactly(2L, 2L);

      assertThat(verify(source, quantize(source))).contains("No difference found");
    }

    @Test
    void stackedExpertsUnderOtherNamesAreNotSkipped() throws Exception {
      Path source = synthesize(SyntheticFamily.QWEN3_VL_MOE, SHAPE);
      ObjectNode config = config(source);
      ((ObjectNode) config.path("text_config")).put("model_type", "qwen3_moe");
      config.put("model_type", "qwen3_moe");
      Files.write(source.resolve("config.json"), JSON.writeValueAsBytes(config));

      SparkSubmitResult result =
          run("quantize", "--input", source.toString(), "--output", folder.resolve("output").toString());

      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err()).contains("layer 0 has neither an MLP nor experts under the names of family qwen3_moe");
    }

    @Test
    void aSmallShareOfQuantizedWeightsIsSaid() throws Exception {
      Path source = synthesize(SyntheticFamily.QWEN3_MOE, new ModelShape(2, 2, 128, 16, 4096));

      assertThat(run("inspect", source.toString()).out())
          .containsPattern("problem +only \\d+\\.\\d % of the parameters are quantized");
    }
  }

  @Nested
  class FilesAndShards {
    @Test
    void aMissingShardIsRefused() throws Exception {
      Path source = synthesize(SyntheticFamily.QWEN3_MOE, SHAPE);
      String shard = JSON.readTree(source.resolve("model.safetensors.index.json").toFile())
          .at("/weight_map/lm_head.weight").asText();
      Files.delete(source.resolve(shard));

      SparkSubmitResult result =
          run("quantize", "--input", source.toString(), "--output", folder.resolve("output").toString());

      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err()).startsWith("Invalid checkpoint ").contains(shard).hasLineCount(1);
    }

    @Test
    void anIndexOfOtherShardsIsRefused() throws Exception {
      Path source = synthesize(SyntheticFamily.QWEN3_MOE, SHAPE);
      Path output = quantize(source);
      Path index = output.resolve("model.safetensors.index.json");
      String stale = Files.readString(source.resolve("model.safetensors.index.json"));
      Files.writeString(index, stale.replaceAll("model-0000\\d-of-0000\\d", "model-00001-of-00001"));

      assertThat(verify(source, output)).contains("the index is of other shards");
    }

    @Test
    void thePlanExplainsItsShards() throws Exception {
      Path source = synthesize(SyntheticFamily.QWEN3_MOE, SHAPE);

      SparkSubmitResult result = run(
          "quantize", "--input", source.toString(), "--output", folder.resolve("output").toString(), "--dry-run",
          "--max-shard-size", "200kB");

      assertThat(result.out()).containsPattern("shards +[2-9]").contains("model-00002-of-0000");
    }
  }

  private Path synthesize(SyntheticFamily family, ModelShape shape) throws Exception {
    Path source = folder.resolve("source");
    new SyntheticCheckpoint(family, shape, DType.BF16, 3, 200_000)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toUri()));
    return source;
  }

  private Path quantize(Path source, String... options) throws IOException {
    Path output = Files.createTempDirectory(folder, "output").resolve("nvfp4");
    List<String> arguments =
        new ArrayList<>(List.of(
            "quantize", "--input", source.toString(), "--output", output.toString(), "--scale-search", "rtn"));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }

  private static String verify(Path source, Path output) {
    return run("verify", "--source", source.toString(), "--quantized", output.toString()).out();
  }

  private static SparkSubmitResult run(String... arguments) {
    return new InProcess().run(arguments);
  }

  /** A copy of a checkpoint, in one shard, with other tensors. */
  private Path rewrite(Path checkpoint, UnaryOperator<Map<String, StoredTensor>> change) throws IOException {
    Path copy = Files.createTempDirectory(folder, "rewritten");
    for (String file : List.of("config.json", "hf_quant_config.json")) {
      if (Files.exists(checkpoint.resolve(file))) {
        Files.copy(checkpoint.resolve(file), copy.resolve(file));
      }
    }

    Map<String, StoredTensor> tensors = change.apply(CheckpointFiles.read(checkpoint));
    CheckpointFiles.write(copy.resolve(SHARD), tensors);
    CheckpointFiles.writeIndex(copy, SHARD, tensors);
    return copy;
  }

  private static Map<String, StoredTensor> replaced(
      Map<String, StoredTensor> tensors, String name, UnaryOperator<StoredTensor> change) {
    Map<String, StoredTensor> changed = new LinkedHashMap<>(tensors);
    changed.put(name, change.apply(tensors.get(name)));
    return changed;
  }

  private static StoredTensor tinyWithZeros(StoredTensor tensor) {
    ByteBuffer data = ByteBuffer.allocate(tensor.data().length).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < data.capacity() / 2; i++) {
      data.putShort(BFloat16.fromFloat(i / 16 == 1 ? 0 : i % 7 * 0.01f / 7));
    }

    return new StoredTensor(tensor.dtype(), tensor.shape(), data.array());
  }

  private static StoredTensor scales(StoredTensor tensor, String type) {
    if (type.equals("U8")) {
      return new StoredTensor(DType.U8, tensor.shape(), tensor.data());
    }

    ByteBuffer scales = ByteBuffer.allocate(tensor.data().length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (byte exponent : tensor.data()) {
      scales.putFloat(E8M0.decode(exponent & 0xFF));
    }

    return new StoredTensor(DType.F32, tensor.shape(), scales.array());
  }

  private static float scalar(Map<String, StoredTensor> tensors, String name) {
    return ByteBuffer.wrap(tensors.get(name).data()).order(ByteOrder.LITTLE_ENDIAN).getFloat();
  }

  private static float amax(StoredTensor bf16) {
    ByteBuffer data = ByteBuffer.wrap(bf16.data()).order(ByteOrder.LITTLE_ENDIAN);
    float amax = 0;
    while (data.hasRemaining()) {
      amax = Math.max(amax, Math.abs(BFloat16.toFloat(data.getShort())));
    }

    return amax;
  }

  private static ObjectNode config(Path checkpoint) throws IOException {
    return (ObjectNode) JSON.readTree(checkpoint.resolve("config.json").toFile());
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
