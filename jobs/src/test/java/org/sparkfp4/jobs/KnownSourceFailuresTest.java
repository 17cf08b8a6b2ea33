package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.formats.E8M0;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** Sources in the forms that there are, and files that are not what an index says. */
class KnownSourceFailuresTest extends KnownFailures {
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
        run("quantize", "--input", source.toString(), "--output", folder().resolve("output").toString());

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
        run("quantize", "--input", source.toString(), "--output", folder().resolve("output").toString());

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).contains("layer 0 has neither an MLP nor experts under the names of family qwen3_moe");
  }

  @Test
  void aSmallShareOfQuantizedWeightsIsSaid() throws Exception {
    Path source = synthesize(SyntheticFamily.QWEN3_MOE, new ModelShape(2, 2, 128, 16, 4096));

    assertThat(run("inspect", source.toString()).out())
        .containsPattern("warning +only \\d+\\.\\d % of the parameters are quantized");
  }

  @Test
  void aMissingShardIsRefused() throws Exception {
    Path source = synthesize(SyntheticFamily.QWEN3_MOE, SHAPE);
    String shard = JSON.readTree(source.resolve("model.safetensors.index.json").toFile())
        .at("/weight_map/lm_head.weight").asText();
    Files.delete(source.resolve(shard));

    SparkSubmitResult result =
        run("quantize", "--input", source.toString(), "--output", folder().resolve("output").toString());

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
        "quantize", "--input", source.toString(), "--output", folder().resolve("output").toString(), "--dry-run",
        "--max-shard-size", "200kB");

    assertThat(result.out()).containsPattern("shards +[2-9]").contains("model-00002-of-0000");
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
}
