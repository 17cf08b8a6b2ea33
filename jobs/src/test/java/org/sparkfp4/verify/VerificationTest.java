package org.sparkfp4.verify;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.safetensors.DType;

/** A checkpoint that ModelOpt's own functions made, then one with a fault at a time. */
class VerificationTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");
  private static final Path EXPECTED = CheckpointFiles.golden("qwen3_moe_bf16.expected/modelopt_rtn.safetensors");
  private static final String SHARD = "model-00001-of-00001.safetensors";
  private static final String EXPERT = "model.layers.1.mlp.experts.2.";

  @TempDir
  private Path folder;

  private Map<String, StoredTensor> tensors;
  private ObjectNode config;

  @BeforeEach
  void readProducersBytes() throws IOException {
    tensors = CheckpointFiles.read(SOURCE);
    tensors.putAll(CheckpointFiles.read(EXPECTED));
    for (String name : List.copyOf(tensors.keySet())) {
      if (name.endsWith(".weight_scale_2")) {
        tensors.put(name.replace("weight_scale_2", "input_scale"), scalar(1));
      }
    }

    config = (ObjectNode) JSON.readTree(SOURCE.resolve("config.json").toFile());
    ObjectNode quantization = config.putObject("quantization_config");
    quantization.put("quant_method", "modelopt").put("quant_algo", "NVFP4");
    quantization.putArray("ignore").add("lm_head").add("model.layers.*.self_attn*").add("model.layers.*.mlp.gate");
  }

  @Test
  void producersOwnBytesAreRight() throws Exception {
    VerificationResult result = verify(24);

    assertThat(result.differences()).isEmpty();
    assertThat(result.isGood()).isTrue();
    assertThat(result.layerLines()).hasSize(24);
    assertThat(result.relativeError()).isBetween(0.09, 0.1);
    assertThat(result.text())
        .contains("Decoded 24 layers: relative error 0.09")
        .contains("Quantized again and compared: 24 layers")
        .contains("Compared with the source byte for byte: 17 tensors")
        .endsWith("No difference found");
  }

  @Test
  void sampleIsTheSameEachTimeAndNeverEmpty() throws Exception {
    assertThat(verify(0).text()).contains("Quantized again and compared: 1 layers");
    assertThat(Sample.of(List.of("a", "b", "c", "d"), SampleSize.parse("50%"))).hasSize(2)
        .isEqualTo(Sample.of(List.of("d", "c", "b", "a"), SampleSize.parse("2")));
  }

  @Test
  void changedCodeIsSeenInEverySample() throws Exception {
    tensors.get(EXPERT + "down_proj.weight").data()[70] ^= 0x10;

    assertThat(verify(24).differences()).singleElement().asString()
        .startsWith("Tensor " + EXPERT + "down_proj.weight (" + SHARD
            + ") differs from the source quantized again in 1 bytes, first at [2, 6]: 0x");
  }

  @Test
  void listsThatLoadersCannotGoThrough() throws Exception {
    ObjectNode quantization = (ObjectNode) config.path("quantization_config");
    ArrayNode ignore = (ArrayNode) quantization.path("ignore");
    ignore.addNull().add(5).addObject().put("a", 1);
    String list = "[\"lm_head\",\"model.layers.*.self_attn*\",\"model.layers.*.mlp.gate\",null,5,{\"a\":1}]";
    assertThat(verify(0).differences())
        .containsExactly("config.json has ignore " + list + ", must be a list of strings");

    ObjectNode named = quantization.putObject("ignore");
    named.put("a", "lm_head").put("b", "model.layers.*.self_attn*").put("c", "model.layers.*.mlp.gate");
    assertThat(verify(0).differences())
        .containsExactly("config.json has ignore " + named + ", must be a list of strings");

    quantization.putArray("ignore").add("lm_head").add("model.layers.*.self_attn*").add("model.layers.*.mlp.gate");
    quantization.putArray("config_groups").addObject().putObject("weights").put("num_bits", 4).put("group_size", 16);
    assertThat(verify(0).differences()).containsExactly("config.json has config_groups "
        + "[{\"weights\":{\"num_bits\":4,\"group_size\":16}}], must be an object of objects");
  }

  @Test
  void unusableBlockScalesAreSeenWithoutSample() throws Exception {
    byte[] scales = tensors.get(EXPERT + "up_proj.weight_scale").data();
    scales[9] = 0x7F;
    scales[17] = 0;

    assertThat(verify(0).differences())
        .contains("Tensor " + EXPERT + "up_proj.weight_scale (" + SHARD
            + ") has 2 block scales that are NaN, zero or negative, the first 0x7F at [1, 1]")
        .anyMatch(line -> line.startsWith("Layer " + EXPERT + "up_proj has a relative error of NaN"));
  }

  @Test
  void swappedNibblesAreMoreThanRounding() throws Exception {
    byte[] codes = tensors.get(EXPERT + "gate_proj.weight").data();
    for (int i = 0; i < codes.length; i++) {
      codes[i] = (byte) (codes[i] << 4 | (codes[i] & 0xF0) >> 4);
    }

    assertThat(verify(0).differences())
        .anyMatch(line -> line.matches("Layer " + EXPERT
            + "gate_proj has a relative error of 1\\.\\d+, more than rounding can cause \\(0\\.25\\)"));
  }

  @Test
  void globalScaleThatIsNotShared() throws Exception {
    float shared = value(EXPERT + "gate_proj.weight_scale_2");
    tensors.put(EXPERT + "gate_proj.weight_scale_2", scalar(shared / 10));

    assertThat(verify(0).differences())
        .contains("Tensors " + EXPERT + "gate_proj.weight_scale_2 and " + EXPERT + "up_proj.weight_scale_2 are "
            + shared / 10 + " and " + shared + ", though runtimes fuse the layers under one scale")
        .anyMatch(line -> line.startsWith("Tensor " + EXPERT + "gate_proj.weight_scale_2 (" + SHARD + ") is "
            + shared / 10 + ", but the largest weight, ") && line.endsWith("makes it " + shared));
  }

  @Test
  void globalScaleThatRuntimesCannotUse() throws Exception {
    tensors.put(EXPERT + "down_proj.weight_scale_2", scalar(Float.POSITIVE_INFINITY));
    tensors.put(EXPERT + "down_proj.input_scale", scalar(0));

    assertThat(verify(0).differences()).containsExactly(
        "Tensor " + EXPERT + "down_proj.weight_scale_2 (" + SHARD + ") is Infinity, must be positive and finite",
        "Tensor " + EXPERT + "down_proj.input_scale (" + SHARD + ") is 0.0, must be positive and finite");
  }

  @Test
  void lastBitOfGlobalScaleMayDifferWhereAnotherProducerWrote() throws Exception {
    float scale = value(EXPERT + "down_proj.weight_scale_2");
    tensors.put(EXPERT + "down_proj.weight_scale_2", scalar(Math.nextUp(scale)));

    assertThat(verify(0).differences()).isEmpty();
  }

  @Test
  void untouchedTensorThatChanged() throws Exception {
    byte[] router = tensors.get("model.layers.0.mlp.gate.weight").data();
    router[5]++;

    assertThat(verify(0).differences()).containsExactly(
        "Tensor model.layers.0.mlp.gate.weight (" + SHARD + ") is not as in the source (" + "model-00001-of-00003"
            + ".safetensors): byte 5 is " + (router[5] & 0xFF) + ", there " + (router[5] - 1 & 0xFF));
  }

  @Test
  void tensorsThatAreMissingOrTooMany() throws Exception {
    tensors.remove("model.norm.weight");
    tensors.remove(EXPERT + "down_proj.input_scale");
    tensors.remove(EXPERT + "up_proj.weight_scale");
    tensors.put("model.layers.0.mlp.gate.extra", scalar(1));
    tensors.put("model.layers.9.mlp.up_proj.weight_scale_2", scalar(1));

    assertThat(verify(0).differences())
        .contains(
            "Missing tensor " + EXPERT + "up_proj.weight_scale of a quantized layer",
            "Unexpected layer model.layers.9.mlp.up_proj: the source has no model.layers.9.mlp.up_proj.weight",
            "Unexpected tensor model.layers.0.mlp.gate.extra (F32 [], " + SHARD
                + "): the source has none of that name, and it is no part of a quantized layer",
            "Missing tensor " + EXPERT + "down_proj.input_scale: by config.json activations are quantized")
        .anyMatch(line -> line.startsWith("Missing tensor model.norm.weight, which the source has in model-0000"));
  }

  @Test
  void scalesOfAQuantizedCacheMayStandBeside() throws Exception {
    tensors.put("model.layers.0.self_attn.k_proj.k_scale", scalar(1));
    tensors.put("model.layers.0.self_attn.v_proj.v_scale", scalar(1));

    assertThat(verify(0).differences()).isEmpty();
  }

  @Test
  void formsOfParts() throws Exception {
    StoredTensor packed = tensors.get(EXPERT + "down_proj.weight");
    tensors.put(EXPERT + "down_proj.weight", new StoredTensor(DType.I8, packed.shape(), packed.data()));
    StoredTensor scales = tensors.get(EXPERT + "up_proj.weight_scale");
    tensors.put(EXPERT + "up_proj.weight_scale", new StoredTensor(scales.dtype(), List.of(512L), scales.data()));
    tensors.put(EXPERT + "gate_proj.weight_scale_2", new StoredTensor(DType.F32, List.of(2L), new byte[8]));

    assertThat(verify(0).differences()).contains(
        "Tensor " + EXPERT + "down_proj.weight (I8 [128, 32], " + SHARD
            + ") must be U8 [128, 32], as its source is BF16 [128, 64]",
        "Tensor " + EXPERT + "up_proj.weight_scale (F8_E4M3 [512], " + SHARD
            + ") must be F8_E4M3 [64, 8], as its source is BF16 [64, 128]",
        "Tensor " + EXPERT + "gate_proj.weight_scale_2 (F32 [2], " + SHARD + ") must be F32 [] or [1]");
  }

  @Test
  void halfOfFusedLayerInHighPrecision() throws Exception {
    Map<String, StoredTensor> source = CheckpointFiles.read(SOURCE);
    tensors.keySet().removeIf(name -> name.startsWith(EXPERT + "up_proj."));
    tensors.put(EXPERT + "up_proj.weight", source.get(EXPERT + "up_proj.weight"));

    assertThat(verify(0).differences()).contains(
        "Layer " + EXPERT + "gate_proj is quantized and " + EXPERT
            + "up_proj is not, though runtimes fuse them into one layer",
        "Layer " + EXPERT + "up_proj is in high precision (BF16), but config.json does not exclude it");
  }

  @Test
  void configThatExcludesTooLittleOrTooMuch() throws Exception {
    ArrayNode ignore = (ArrayNode) config.path("quantization_config").path("ignore");
    ignore.remove(2);
    ignore.add("model.layers.1.mlp*");

    assertThat(verify(0).differences())
        .contains(
            "Layer model.layers.0.mlp.gate is in high precision (BF16), but config.json does not exclude it",
            "Layer " + EXPERT + "down_proj is quantized, but config.json excludes it by \"model.layers.1.mlp*\"")
        .hasSize(13);
  }

  @Test
  void exclusionsAreReadAsLoadersReadThem() {
    ModulePattern glob = ModulePattern.glob("model.layers.*.mlp.gate");
    assertThat(glob.excludes("model.layers.10.mlp.gate")).isTrue();
    assertThat(glob.mayExclude("model.layers.10.mlp.gate_proj")).isFalse();
    ModulePattern name = ModulePattern.glob("model.layers.1.mlp.gate");
    assertThat(name.excludes("model.layers.1.mlp.gate_proj")).isFalse();
    assertThat(name.mayExclude("model.layers.1.mlp.gate_proj")).isTrue();
    ModulePattern regex = ModulePattern.nameOrRegex("re:.*mlp\\.gate$");
    assertThat(regex.excludes("model.layers.1.mlp.gate")).isTrue();
    assertThat(regex.mayExclude("model.layers.1.mlp.gate_proj")).isFalse();
    assertThat(ModulePattern.nameOrRegex("re:model\\.layers\\.1\\.").excludes("model.layers.1.mlp.gate")).isTrue();
    assertThat(ModulePattern.nameOrRegex("lm_head").mayExclude("lm_head.x")).isFalse();
  }

  @Test
  void filesThatDisagree() throws Exception {
    ObjectNode nested = JSON.createObjectNode();
    nested.putObject("quantization").put("quant_algo", "NVFP4").put("group_size", 16).putNull("kv_cache_quant_algo")
        .putArray("exclude_modules").add("lm_head").add("model.layers.*.self_attn*").add("*.mlp.gate");
    Files.write(folder.resolve("hf_quant_config.json"), JSON.writeValueAsBytes(nested));

    assertThat(verify(0).differences()).containsExactly("config.json and hf_quant_config.json differ in the "
        + "quantization of activations or in the modules that they exclude or name");
  }

  @Test
  void wrongTotalAndStrayFile() throws Exception {
    write();
    Files.write(folder.resolve("consolidated.safetensors"), new byte[8]);
    Path index = folder.resolve("model.safetensors.index.json");
    Files.writeString(index, Files.readString(index).replaceAll("\"total_size\":\\d+", "\"total_size\":7"));

    assertThat(verification(0).run().differences()).containsExactly(
        "Unexpected file consolidated.safetensors: the index does not name it, but some runtimes load every "
            + ".safetensors file",
        "model.safetensors.index.json has the total_size 7, the tensors take "
            + tensors.values().stream().mapToLong(tensor -> tensor.data().length).sum());
  }

  @Test
  void indexThatIsNotOfItsShards() throws Exception {
    write();
    tensors.remove("model.norm.weight");
    CheckpointFiles.writeIndex(folder, SHARD, tensors);

    VerificationResult result = verification(0).run();

    assertThat(result.isGood()).isFalse();
    assertThat(result.text()).contains("1 difference found:").contains("lacks tensor model.norm.weight");
  }

  @Test
  void filesBesideTheShards() throws Exception {
    write();
    Files.delete(folder.resolve("config.json"));
    assertThat(verification(0).run().differences()).contains("Missing file config.json, which the source has");

    config.put("hidden_size", 7).remove("num_experts");
    write();
    assertThat(verification(0).run().isGood()).as("what another producer made of its config.json").isTrue();

    Files.writeString(folder.resolve("sparkfp4-manifest.json"), """
        {"fingerprint": "f", "input": "i", "sources": [], "shards": [], "files": ["config.json", "tokenizer.json"]}
        """);
    Files.delete(folder.resolve("model.safetensors.index.json"));
    assertThat(verification(0).run().differences()).containsExactly(
        "Shard " + SHARD + " is not in the manifest",
        "Missing file model.safetensors.index.json, which was written with the shards",
        "Missing file tokenizer.json, which was written with the shards",
        "config.json has hidden_size 7, in the source it is 128",
        "config.json has num_experts missing, in the source it is 4");
  }

  @Test
  void differencesAreCounted() throws Exception {
    tensors.keySet().removeIf(name -> name.endsWith(".weight_scale"));

    assertThat(verify(0).text()).contains("24 differences found:").endsWith("  … and 4 more");
  }

  @Test
  void nonFiniteSource() throws Exception {
    Path changed = Files.createDirectory(folder.resolve("source"));
    Map<String, StoredTensor> source = CheckpointFiles.read(SOURCE);
    ByteBuffer.wrap(source.get(EXPERT + "down_proj.weight").data()).order(ByteOrder.LITTLE_ENDIAN)
        .putShort(2 * (64 * 3 + 5), (short) 0x7FC0);
    CheckpointFiles.write(changed.resolve("model.safetensors"), source);
    write();

    VerificationResult result = new Verification(
        TestSpark.session(), Checkpoint.open(new Configuration(), changed.toString()), folder.toString(), null).run();

    assertThat(result.differences()).containsExactly("Source tensor " + EXPERT
        + "down_proj.weight (model.safetensors) has NaN at [3, 5], which NVFP4 cannot stand for");
  }

  @Test
  void unfinishedOrMissingFolderIsAnError() throws Exception {
    Files.createDirectory(folder.resolve("_sparkfp4"));

    assertThatThrownBy(() -> verification(0).run())
        .isInstanceOf(IOException.class)
        .hasMessage("Cannot verify " + folder
            + ": a run has not finished it; start quantize again with the same options");
    assertThatThrownBy(() -> new Verification(
            TestSpark.session(), Checkpoint.open(new Configuration(), SOURCE.toString()), "/nowhere", null).run())
        .isInstanceOf(IOException.class)
        .hasMessage("Cannot verify /nowhere: there is no such folder");
  }

  private VerificationResult verify(long layers) throws IOException {
    write();
    return verification(layers).run();
  }

  private void write() throws IOException {
    CheckpointFiles.write(folder.resolve(SHARD), tensors);
    CheckpointFiles.writeIndex(folder, SHARD, tensors);
    Files.write(folder.resolve("config.json"), JSON.writeValueAsBytes(config));
  }

  private Verification verification(long layers) throws IOException {
    Checkpoint source = Checkpoint.open(new Configuration(), SOURCE.toString());
    return new Verification(TestSpark.session(), source, folder.toString(), new SampleSize(layers, 0));
  }

  private float value(String name) {
    return ByteBuffer.wrap(tensors.get(name).data()).order(ByteOrder.LITTLE_ENDIAN).getFloat();
  }

  private static StoredTensor scalar(float value) {
    byte[] data = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putFloat(value).array();
    return new StoredTensor(DType.F32, List.of(), data);
  }
}
