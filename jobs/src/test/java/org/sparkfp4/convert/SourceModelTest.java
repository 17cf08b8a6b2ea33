package org.sparkfp4.convert;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.layouts.ExpertLayout;
import org.sparkfp4.layouts.ExpertShape;
import org.sparkfp4.layouts.StackPart;
import org.sparkfp4.output.BadSourceException;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** What names and shapes show to be wrong, before any byte is read. */
class SourceModelTest {
  private static final String EXPERTS = "model.layers.0.mlp.experts";
  private static final String NAMES = "[\"gate_proj\",\"up_proj\",\"down_proj\"]";
  private static final String GLOBALS = "[\"m3a83126f\",\"m3a83126f\",\"m3a83126f\"]";

  private static List<LocatedTensor> tensors(boolean gated, int experts, long hidden, long width) {
    List<LocatedTensor> tensors = new ArrayList<>();
    for (int e = 0; e < experts; e++) {
      if (gated) {
        add(tensors, EXPERTS + "." + e + ".gate_proj", width, hidden);
      }

      add(tensors, EXPERTS + "." + e + ".up_proj", width, hidden);
      add(tensors, EXPERTS + "." + e + ".down_proj", hidden, width);
    }

    return tensors;
  }

  private static void add(List<LocatedTensor> tensors, String module, long rows, long cols) {
    tensors.add(tensor(module + ".weight", DType.U8, rows, cols / 2));
    tensors.add(tensor(module + ".weight_scale", DType.F8_E4M3, rows, cols / 16));
    tensors.add(tensor(module + ".weight_scale_2", DType.F32));
  }

  private static LocatedTensor tensor(String name, DType dtype, Long... shape) {
    long elements = List.of(shape).stream().reduce(1L, Math::multiplyExact);
    return new LocatedTensor(name, dtype, List.of(shape), "model.safetensors", 0, dtype.bytes(elements));
  }

  private static JsonNode config(String json) throws Exception {
    return new ObjectMapper().readTree(json);
  }

  private static void plan(List<LocatedTensor> tensors, String layout) throws Exception {
    SourceModel model = SourceModel.of(tensors, Map.of(), config("{}"));
    new ConvertPlanner(model, layout, InitializerNames.byPath(), 0).plan("file:/in", List.of(), tensors);
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "trt-edge-llm-sm110 | true | 64 | 128 | 64 | it has 64 experts, the runtime takes 128, 256",
    "trt-edge-llm-sm110 | true | 128 | 64 | 64 | the model's width H is 64, which must be a multiple of 128",
    "trt-edge-llm-sm110 | true | 256 | 128 | 96 | an expert's width I is 96, which must be a multiple of 64",
    "trt-edge-llm-sm12x | true | 3 | 128 | 128 | the model's width H is 128, which must be a multiple of 256",
    "trt-edge-llm-sm12x | false | 3 | 256 | 64 | an expert's width I is 64, which must be a multiple of 128",
    "blackwell-moe | true | 128 | 128 | 64 | its experts have a gate, the runtime takes those without (relu2)",
    "blackwell-moe | false | 64 | 128 | 64 | it has 64 experts, the runtime takes 128, 256, 512",
    "marlin-edge | true | 256 | 128 | 64 | it has 256 experts, the runtime takes 128",
    "marlin-edge | false | 128 | 128 | 64 | an expert's width I is 64, which must be a multiple of 128",
    "marlin-vllm | true | 2 | 128 | 32 | an expert's width I is 32, which must be a multiple of 64",
    "trtllm-gen | true | 2 | 64 | 64 | the model's width H is 64, which must be a multiple of 128"})
  void shapesThatARuntimeDoesNotTake(
      String layout, boolean gated, int experts, long hidden, long width, String rule) {
    assertThatThrownBy(() -> plan(tensors(gated, experts, hidden, width), layout))
        .hasMessage("Cannot write " + EXPERTS + " in layout " + layout + ": " + rule + "; choose another layout");
  }

  @Test
  void shapesThatARuntimeTakes() throws Exception {
    plan(tensors(true, 128, 128, 64), "trt-edge-llm-sm110");
    plan(tensors(false, 256, 128, 64), "trt-edge-llm-sm110");
    plan(tensors(true, 3, 256, 128), "trt-edge-llm-sm12x");
    plan(tensors(false, 512, 64, 64), "blackwell-moe");
    plan(tensors(true, 1, 16, 16), "cublas-128x4");
    plan(tensors(true, 1, 16, 48), "scales-8x4");
  }

  @Test
  void missingExpertsAndParts() throws Exception {
    List<LocatedTensor> tensors = tensors(true, 4, 128, 64);
    List<LocatedTensor> without = new ArrayList<>(tensors);
    without.removeIf(tensor -> tensor.name().startsWith(EXPERTS + ".2."));
    assertThatThrownBy(() -> plan(without, "cublas-128x4"))
        .hasMessageStartingWith("Cannot convert " + EXPERTS + ": " + EXPERTS + ".2.gate_proj is missing");

    List<LocatedTensor> plain = new ArrayList<>(without);
    plain.add(tensor(EXPERTS + ".2.gate_proj.weight", DType.BF16, 64L, 128L));
    assertThatThrownBy(() -> plan(plain, "cublas-128x4"))
        .hasMessageContaining(EXPERTS + ".2.gate_proj is not quantized");

    List<LocatedTensor> noDown = new ArrayList<>(tensors);
    noDown.removeIf(tensor -> tensor.name().startsWith(EXPERTS + ".3.down"));
    assertThatThrownBy(() -> plan(noDown, "modelopt")).hasMessageContaining(EXPERTS + ".3.down_proj is missing");

    assertThatThrownBy(() -> SourceModel.of(tensors, Map.of(), config("{\"num_experts\": 6}")))
        .hasMessageContaining(EXPERTS + ".4.gate_proj is missing");
    assertThatThrownBy(() -> SourceModel.of(tensors, Map.of(), config("{\"text_config\": {\"n_routed_experts\": 3}}")))
        .hasMessageContaining("it has an expert 3, but config.json has n_routed_experts 3");
  }

  @Test
  void otherFormats() throws Exception {
    List<LocatedTensor> tensors = tensors(true, 2, 128, 64);
    tensors.removeIf(tensor -> tensor.name().equals(EXPERTS + ".1.up_proj.weight_scale"));
    tensors.add(tensor(EXPERTS + ".1.up_proj.weight_scale", DType.F8_E4M3, 64L, 4L));
    assertThatThrownBy(() -> plan(tensors, "modelopt"))
        .hasMessage("Cannot convert " + EXPERTS + ".1.up_proj: tensor " + EXPERTS + ".1.up_proj.weight_scale is"
            + " F8_E4M3 [64, 4] (model.safetensors), must be F8_E4M3 [rows, K/16], a scale for each 16 codes");

    assertThatThrownBy(() -> plan(List.of(tensor("lm_head.weight", DType.BF16, 8L, 16L)), "modelopt"))
        .hasMessageStartingWith("Cannot convert the input: it has no NVFP4 layers of a known layout");
    assertThatThrownBy(() -> plan(
        List.of(tensor("m.experts.down_proj_weight_scale_2", DType.F32)), "modelopt"))
        .hasMessageContaining("its experts are stacked as ModelOpt does for Llama 4 and gpt-oss");
    assertThatThrownBy(() -> SourceModel.of(tensors(true, 2, 128, 64), Map.of(),
        config("{\"quantization_config\": {\"quant_algo\": \"MIXED_PRECISION\"}}")))
        .hasMessageStartingWith("Cannot convert a checkpoint that keeps other quantized formats beside NVFP4");

    List<LocatedTensor> cache = tensors(true, 2, 128, 64);
    cache.add(tensor("model.layers.0.self_attn.k_proj.k_scale", DType.F32));
    plan(cache, "cublas-128x4");
    assertThatThrownBy(() -> plan(cache, "compressed-tensors")).hasMessageStartingWith("Cannot convert to "
        + "compressed-tensors: the source quantizes the KV cache (model.layers.0.self_attn.k_proj.k_scale)");

    List<LocatedTensor> shapes = tensors(true, 2, 128, 64);
    shapes.removeIf(tensor -> tensor.name().startsWith(EXPERTS + ".1.down_proj"));
    add(shapes, EXPERTS + ".1.down_proj", 128, 128);
    assertThatThrownBy(() -> plan(shapes, "modelopt"))
        .hasMessage("Cannot convert " + EXPERTS + ".1.down_proj: it is [128, 128], beside the other experts it must be "
            + "[128, 64]");
  }

  /** Each of two names for an expert or a matrix would take the other's place. */
  @Test
  void expertsThatWouldBeLost() {
    List<LocatedTensor> twice = tensors(true, 4, 128, 64);
    add(twice, EXPERTS + ".01.gate_proj", 64, 128);
    assertThatThrownBy(() -> plan(twice, "modelopt"))
        .hasMessageStartingWith("Cannot convert " + EXPERTS + ".01.gate_proj: the expert's number 01 has a leading zero");

    List<LocatedTensor> both = tensors(true, 4, 128, 64);
    add(both, EXPERTS + ".2.w1", 64, 128);
    add(both, EXPERTS + ".2.w2", 128, 64);
    add(both, EXPERTS + ".2.w3", 64, 128);
    assertThatThrownBy(() -> plan(both, "cublas-128x4")).hasMessageStartingWith("Cannot convert " + EXPERTS
        + ".2.w1 (model.safetensors): the layer's experts consist of gate_proj, up_proj, down_proj;");
  }

  /** What is left of a layer would pass for a tensor that was never quantized. */
  @ParameterizedTest
  @CsvSource({
    "model.layers.0.self_attn.o_proj.weight, U8",
    "model.layers.0.self_attn.o_proj.weight_scale, F8_E4M3",
    "model.layers.0.self_attn.o_proj.weight_packed, U8",
    "model.layers.0.mlp.experts.9.up_proj.weight, U8",
    "model.layers.0.self_attn.q_proj.weight_scale, F32"})
  void layersWithoutGlobalScale(String name, DType dtype) {
    List<LocatedTensor> tensors = tensors(true, 4, 128, 64);
    tensors.add(tensor(name, dtype, 64L, 64L));

    assertThatThrownBy(() -> plan(tensors, "modelopt"))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageStartingWith("Cannot convert " + name + " (model.safetensors): it is " + dtype + " [64, 64], a part of"
            + " a quantized layer, but the layer's other tensors (")
        .hasMessageEndingWith("quantize or download the checkpoint again");
  }

  @Test
  void configurationsOfOtherMethods() throws Exception {
    List<LocatedTensor> tensors = tensors(true, 4, 128, 64);
    assertThatThrownBy(() -> SourceModel.of(
        tensors, Map.of(), config("{\"quantization_config\": {\"quant_method\": \"fp8\"}}")))
        .hasMessageStartingWith("Cannot convert: config.json has quant_method \"fp8\" in its quantization_config");
    assertThatThrownBy(() -> SourceModel.of(
        tensors, Map.of(), config("{\"quantization_config\": {\"quant_method\": \"compressed-tensors\"}}")))
        .hasMessageContaining("quant_method \"compressed-tensors\"")
        .hasMessageContaining("but the tensors are those of modelopt");
    assertThat(SourceModel.of(
        tensors, Map.of(), config("{\"quantization_config\": {\"quant_method\": \"modelopt\"}}")).layers()).hasSize(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {
      "[\"lm_head\", null]", "[\"lm_head\", {\"a\": 1}]", "[5]", "{\"a\": \"lm_head\"}", "\"lm_head\""})
  void ignoreThatIsNoListOfStrings(String ignore) throws Exception {
    List<LocatedTensor> tensors = tensors(true, 4, 128, 64);
    assertThatThrownBy(() -> SourceModel.of(tensors, Map.of(),
        config("{\"quantization_config\": {\"quant_method\": \"modelopt\", \"ignore\": " + ignore + "}}")))
        .hasMessageStartingWith("Cannot convert: config.json has in its quantization_config an ignore that is no list of "
            + "strings");
  }

  /** Tensors of a layer of one expert [16, 16] in a layout of stacked experts, and what its file says of it. */
  private static ExpertLayer stacked(String projections, String globals, String inputs) {
    ExpertLayout layout = ExpertLayout.CUBLAS_128X4;
    ExpertShape shape = new ExpertShape(true, 1, 16, 16);
    List<LocatedTensor> tensors = new ArrayList<>();
    StringBuilder names = new StringBuilder();
    for (StackPart part : layout.parts()) {
      names.append(names.isEmpty() ? "" : ",").append('"').append(layout.nameOf(part)).append('"');
      tensors.add(tensor(layout.nameOf(part), layout.dtype(part), layout.shapeOf(shape, part).toArray(new Long[0])));
    }

    String json = "{\"layout\":\"cublas-128x4\",\"projections\":" + projections + ",\"experts\":1,\"hidden\":16,"
        + "\"intermediate\":16,\"tensors\":[" + names + "],\"globals\":" + globals + ",\"inputs\":" + inputs + "}";
    return SourceModel.of(
        tensors, Map.of(StackDescription.KEY + "m.experts", json), JsonNodeFactory.instance.objectNode()).layers().get(0);
  }

  @ParameterizedTest
  @ValueSource(strings = {"m7fc00000", "m00000000", "mbf800000", "m7f800000", "r7f800000"})
  void inputScalesThatAreNone(String bits) throws Exception {
    ExpertReader reader = ExpertReader.of(stacked(NAMES, GLOBALS, "[\"\",\"m3f800000\",\"" + bits + "\"]"), null);

    assertThat(reader.input(0, 0)).isNull();
    assertThat(reader.input(0, 1)).isEqualTo(GlobalScale.of(false, 1));
    assertThatThrownBy(() -> reader.input(0, 2))
        .isInstanceOf(BadSourceException.class)
        .hasMessageStartingWith("Invalid global scale of the activations of m.experts.0.down_proj in the metadata of"
            + " model.safetensors");
  }

  @Test
  void metadataWithNulls() {
    for (List<String> lists : List.of(
        List.of("[\"gate_proj\",null,\"down_proj\"]", GLOBALS, "[\"\",\"\",\"\"]"),
        List.of(NAMES, "[\"m3a83126f\",null,\"m3a83126f\"]", "[\"\",\"\",\"\"]"),
        List.of(NAMES, GLOBALS, "[\"\",null,\"\"]"))) {
      assertThatThrownBy(() -> stacked(lists.get(0), lists.get(1), lists.get(2))).as(lists.toString())
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("Invalid metadata " + StackDescription.KEY + "m.experts: a list of it has a null");
    }
  }

  @Test
  void bitsThatAreNone() {
    String key = GlobalScale.KEY + "m.weight_global_scale";
    assertThatThrownBy(() -> SourceModel.of(
        tensors(true, 1, 128, 64), Map.of(key, "zzz"), JsonNodeFactory.instance.objectNode()))
        .hasMessageStartingWith("Invalid metadata " + key + ": Invalid global scale: zzz");
  }

  @Test
  void metadataIsNamedByKeyAndFile(@TempDir Path folder) throws IOException {
    String key = GlobalScale.KEY + "m.weight_global_scale";
    ExpertFiles.of(true, 1, 128, 64).write(folder);
    Path other = folder.resolve(ExpertFiles.SHARD);
    byte[] all = Files.readAllBytes(other);
    SafetensorsHeader header = SafetensorsHeader.read(
        FileSystem.getLocal(new Configuration()).getRawFileSystem(), new org.apache.hadoop.fs.Path(other.toUri()));
    try (OutputStream out = Files.newOutputStream(other)) {
      out.write(SafetensorsHeader.encode(header.tensors(), Map.of(key, "zzz")));
      out.write(all, (int) header.dataStart(), all.length - (int) header.dataStart());
    }

    Configuration conf = new Configuration();
    Checkpoint checkpoint = Checkpoint.open(conf, folder.toString());
    assertThatThrownBy(() -> SourceModel.of(conf, checkpoint))
        .hasMessageStartingWith("Invalid metadata " + key + " in " + ExpertFiles.SHARD + ": Invalid global scale: zzz");
  }

  @Test
  void metadataThatIsNoDescription() {
    String key = StackDescription.KEY + "m.experts";
    for (String json : List.of("", "null", "[]", "{}", "{\"layout\": \"cublas-128x4\"}",
        "{\"layout\":\"cublas-128x4\",\"projections\":[\"up_proj\"],\"experts\":1,\"hidden\":16,\"intermediate\":16,"
            + "\"tensors\":[],\"globals\":[\"\"],\"inputs\":[\"\"]}")) {
      assertThatThrownBy(() -> StackDescription.parse(key, json)).as(json)
          .isInstanceOf(IllegalArgumentException.class)
          .hasMessageStartingWith("Invalid metadata " + key);
    }

    StackDescription read = StackDescription.parse(key,
        "{\"layout\":\"x\",\"projections\":[\"up_proj\",\"down_proj\"],\"experts\":2,\"hidden\":16,\"intermediate\":16,"
            + "\"tensors\":[],\"globals\":[\"m00000000\",\"\"],\"inputs\":[\"\",\"\"]}");
    assertThatThrownBy(() -> read.scales(key, read.globals().get(0)))
        .hasMessageContaining("it has not as many scales as experts");
    assertThat(read.scales(key, read.inputs().get(0))).isEmpty();
  }
}
