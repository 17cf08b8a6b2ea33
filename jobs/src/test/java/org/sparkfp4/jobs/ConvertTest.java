package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Bytes;
import org.sparkfp4.formats.NVFP4Tensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** Checkpoints from layout to layout and back, through the whole job. */
class ConvertTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String CONTAINER = "external_nvfp4_moe_weights.safetensors";
  private static final int HIDDEN = 256;
  private static final int WIDTH = 128;

  @TempDir
  private static Path shared;

  @TempDir
  private Path folder;

  private static Path gatedSource;
  private static Path gated;
  private static Path ungated;

  @BeforeAll
  static void quantizeModels() throws IOException {
    gatedSource = synthesize("gated-source", SyntheticFamily.MINIMAX_M2, new ModelShape(2, 128, HIDDEN, WIDTH, 96));
    gated = quantize(gatedSource, shared.resolve("gated"), "modelopt");
    Path ungatedSource = synthesize("ungated-source", SyntheticFamily.NEMOTRON_H, new ModelShape(4, 128, 128, 192, 96));
    ungated = quantize(ungatedSource, shared.resolve("ungated"), "modelopt");
  }

  private static Path synthesize(String name, SyntheticFamily family, ModelShape shape) throws IOException {
    Path source = shared.resolve(name);
    new SyntheticCheckpoint(family, shape, DType.BF16, 11, 20 << 20)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toUri()));
    return source;
  }

  private static Path quantize(Path source, Path output, String layout, String... options) {
    said(source, output, layout, options);
    return output;
  }

  /** What quantize says. */
  private static String said(Path source, Path output, String layout, String... options) {
    List<String> arguments = new ArrayList<>(List.of("quantize", "--input", source.toString(), "--output",
        output.toString(), "--layout", layout, "--scale-search", "rtn", "--max-shard-size", "5MB"));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = new InProcess().run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return result.out();
  }

  private Path convert(Path input, String layout, String name, String... options) {
    SparkSubmitResult result = tryConvert(input, layout, name, options);
    assertThat(result.status()).as(result.err()).isZero();
    return folder.resolve(name);
  }

  private SparkSubmitResult tryConvert(Path input, String layout, String name, String... options) {
    List<String> arguments = new ArrayList<>(List.of("convert", "--input", input.toString(), "--to", layout, "--output",
        folder.resolve(name).toString(), "--max-shard-size", "6MB"));
    arguments.addAll(List.of(options));
    return new InProcess().run(arguments.toArray(new String[0]));
  }

  private static void assertGoodByManifest(Path output, Path source) {
    SparkSubmitResult result = new InProcess().run(
        "verify", "--quantized", output.toString(), "--manifest", "--source", source.toString());
    assertThat(result.status()).as(result.out() + result.err()).isZero();
  }

  private static void assertSameTensors(Path expected, Path actual) throws IOException {
    Map<String, StoredTensor> wanted = CheckpointFiles.read(expected);
    Map<String, StoredTensor> found = CheckpointFiles.read(actual);
    assertThat(found.keySet()).containsExactlyInAnyOrderElementsOf(wanted.keySet());
    wanted.forEach((name, tensor) -> {
      assertThat(found.get(name).dtype()).as(name).isEqualTo(tensor.dtype());
      assertThat(found.get(name).shape()).as(name).isEqualTo(tensor.shape());
      assertThat(Arrays.equals(found.get(name).data(), tensor.data())).as("bytes of " + name).isTrue();
    });
    for (String config : List.of("config.json", "hf_quant_config.json")) {
      assertThat(inOrder(json(actual, config))).isEqualTo(inOrder(json(expected, config)));
    }
  }

  /** Lists of modules that are not quantized have the order of the files that their tensors are in. */
  private static JsonNode inOrder(JsonNode config) {
    for (String list : List.of("/quantization_config/ignore", "/ignore", "/quantization/exclude_modules")) {
      if (config.at(list) instanceof ArrayNode modules) {
        List<String> names = new ArrayList<>();
        modules.forEach(name -> names.add(name.asText()));
        modules.removeAll();
        names.stream().sorted().forEach(modules::add);
      }
    }

    return config;
  }

  private static JsonNode json(Path output, String file) throws IOException {
    return JSON.readTree(output.resolve(file).toFile());
  }

  @ParameterizedTest
  @ValueSource(strings = {
      "compressed-tensors", "trt-edge-llm-sm110", "trt-edge-llm-sm12x", "marlin-edge", "marlin-vllm", "cublas-128x4",
      "scales-8x4", "trtllm-gen"})
  void gatedExpertsComeBack(String layout) throws IOException {
    Path arranged = convert(gated, layout, "arranged");
    assertGoodByManifest(arranged, gated);
    assertThat(arranged.resolve("_sparkfp4")).doesNotExist();

    Path back = convert(arranged, "modelopt", "back");

    assertSameTensors(gated, back);
    assertGoodByManifest(back, arranged);
  }

  @ParameterizedTest
  @ValueSource(strings = {
      "trt-edge-llm-sm110", "blackwell-moe", "marlin-vllm", "cublas-128x4", "scales-8x4"})
  void expertsWithoutGateComeBack(String layout) throws IOException {
    Path arranged = convert(ungated, layout, "arranged");

    assertSameTensors(ungated, convert(arranged, "modelopt", "back"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"java", "scalar"})
  void allTiersGiveTheSameFiles(String tier) throws IOException {
    Path fast = convert(gated, "marlin-vllm", "fast");
    SparkSubmitResult slow = new InProcess().conf("spark.fp4.cpu.tier", tier).run("convert", "--input", gated.toString(),
        "--to", "marlin-vllm", "--output", folder.resolve("slow").toString(), "--max-shard-size", "6MB");
    assertThat(slow.status()).as(slow.err()).isZero();
    Outputs.assertSame(fast, folder.resolve("slow"));
    SparkSubmitResult unknown = new InProcess().conf("spark.fp4.cpu.tier", "mmx").run(
        "convert", "--input", gated.toString(), "--to", "marlin-vllm", "--output", folder.resolve("none").toString());
    assertThat(unknown.status()).isEqualTo(1);
    assertThat(folder.resolve("none")).doesNotExist();
  }

  @Test
  void globalScalesSurviveAnyWay() throws IOException {
    Path one = convert(gated, "compressed-tensors", "1");
    Path two = convert(one, "trt-edge-llm-sm12x", "2");
    Path three = convert(two, "marlin-edge", "3");
    Path four = convert(three, "compressed-tensors", "4");
    Path five = convert(four, "trtllm-gen", "5");

    assertSameTensors(gated, convert(five, "modelopt", "6"));
    // The reciprocal of the reciprocal is another float, else this would show nothing.
    long moved = CheckpointFiles.read(gated).entrySet().stream()
        .filter(tensor -> tensor.getKey().endsWith("weight_scale_2"))
        .map(tensor -> little(tensor.getValue()).getFloat())
        .filter(scale -> 1 / (1 / scale) != scale)
        .count();
    assertThat(moved).isPositive();
  }

  @Test
  void quantizeWritesWhatConvertMakes() throws IOException {
    Path converted = convert(gated, "trt-edge-llm-sm110", "converted");

    Path made = folder.resolve("made");
    String said = said(gatedSource, made, "trt-edge-llm-sm110");

    assertThat(said).contains(String.format(Locale.ROOT, "made: %d shards, %,d bytes",
        made.toFile().list((parent, name) -> name.endsWith(".safetensors")).length,
        json(made, "model.safetensors.index.json").at("/metadata/total_size").asLong()));
    assertThat(json(made, "sparkfp4-report.json").path("output").asText()).endsWith("/made");
    assertThat(made.resolve("README.md")).content().contains("Nvfp4MoePlugin").doesNotContain("vllm serve");
    assertThat(made.resolve("_sparkfp4")).doesNotExist();
    assertSameContainer(converted, made);
    assertThat(json(made, "config.json")).isEqualTo(json(converted, "config.json"));
    assertGoodByManifest(made, gatedSource);
    Path back = convert(made, "modelopt", "back");
    assertSameTensors(gated, back);
    assertVerifyAdvises(made, back);
    Map<String, String> before = Outputs.identities(made, "");
    quantize(gatedSource, made, "trt-edge-llm-sm110");
    assertThat(Outputs.identities(made, "")).isEqualTo(before);
  }

  /** Of experts arranged for a runtime, verify says what to verify instead: that must be good. */
  private static void assertVerifyAdvises(Path arranged, Path back) {
    SparkSubmitResult refused =
        new InProcess().run("verify", "--quantized", arranged.toString(), "--source", gatedSource.toString());
    assertThat(refused.status()).isEqualTo(1);
    assertThat(refused.out()).isEmpty();
    assertThat(refused.err()).hasLineCount(1).startsWith("Cannot hold ")
        .contains("verify what convert --input " + arranged + " --to modelopt makes of it", "--manifest");
    SparkSubmitResult advised =
        new InProcess().run("verify", "--quantized", back.toString(), "--source", gatedSource.toString());
    assertThat(advised.status()).as(advised.out() + advised.err()).isZero();
  }

  private static void assertSameContainer(Path expected, Path actual) throws IOException {
    assertThat(Files.mismatch(expected.resolve(CONTAINER), actual.resolve(CONTAINER))).isEqualTo(-1);
  }

  @Test
  void containerIsWhatThePluginTakes() throws IOException {
    Path made = convert(gated, "trt-edge-llm-sm110", "made");

    JsonNode entry = json(made, "config.json").path("external_weight_files").path(0);
    assertThat(entry.path("file").asText()).isEqualTo(CONTAINER);
    assertThat(entry.path("kind").asText()).isEqualTo("nvfp4_moe_weights");
    SafetensorsHeader header = header(made.resolve(CONTAINER));
    assertThat(header.dataStart() % 8).isZero();
    assertThat(header.metadata()).containsEntry("sparkfp4.layout", "trt-edge-llm-sm110");
    List<String> names = new ArrayList<>();
    entry.path("tensors").forEach(name -> names.add(name.asText()));
    assertThat(header.tensors().stream().map(TensorInfo::name)).containsExactlyElementsOf(names);
    assertThat(header.tensors().stream().limit(9)
        .map(tensor -> tensor.name() + " " + tensor.dtype() + " " + tensor.shape()))
        .containsExactly(
            "model.layers.0.block_sparse_moe.experts.fc1_qweights I8 [128, 256, 128]",
            "model.layers.0.block_sparse_moe.experts.fc1_blocks_scale I8 [128, 2, 4, 32, 4, 4]",
            "model.layers.0.block_sparse_moe.experts.fc1_alpha F32 [128]",
            "model.layers.0.block_sparse_moe.experts.fc2_qweights I8 [128, 256, 64]",
            "model.layers.0.block_sparse_moe.experts.fc2_blocks_scale I8 [128, 2, 2, 32, 4, 4]",
            "model.layers.0.block_sparse_moe.experts.fc2_alpha F32 [128]",
            "model.layers.0.block_sparse_moe.experts.input_global_scale F32 [128]",
            "model.layers.0.block_sparse_moe.experts.down_input_scale F32 [128]",
            "model.layers.0.block_sparse_moe.experts.e_score_correction_bias F32 [128]");
    Map<String, StoredTensor> tensors = CheckpointFiles.read(made.resolve(CONTAINER));
    Map<String, StoredTensor> source = CheckpointFiles.read(gated);
    String path = "model.layers.1.block_sparse_moe.";
    assertThat(tensors.get(path + "experts.e_score_correction_bias").data())
        .isEqualTo(source.get(path + "e_score_correction_bias").data());
    assertThat(little(tensors.get(path + "experts.input_global_scale")).getFloat(17 * 4)).isEqualTo(1);
    assertThat(little(tensors.get(path + "experts.fc1_alpha")).getFloat(17 * 4))
        .isEqualTo(little(source.get(path + "experts.17.w1.weight_scale_2")).getFloat());
  }

  private static SafetensorsHeader header(Path file) throws IOException {
    org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(file.toUri());
    return SafetensorsHeader.read(FileSystem.getLocal(new Configuration()).getRawFileSystem(), path);
  }

  private static ByteBuffer little(StoredTensor tensor) {
    return ByteBuffer.wrap(tensor.data()).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Read by the page's view, the file gives the values of ModelOpt's output. */
  @ParameterizedTest
  @ValueSource(strings = {"trt-edge-llm-sm110", "trt-edge-llm-sm12x"})
  void viewDecodesTheSameValues(String layout) throws IOException {
    Path made = quantize(gatedSource, folder.resolve("made"), layout);
    Map<String, StoredTensor> container = CheckpointFiles.read(made.resolve(CONTAINER));
    Map<String, StoredTensor> source = CheckpointFiles.read(gated);
    String path = "model.layers.1.block_sparse_moe.experts.";
    NVFP4Tensor fc1 = view(container, path + "fc1_", 2 * WIDTH, HIDDEN);
    NVFP4Tensor fc2 = view(container, path + "fc2_", HIDDEN, WIDTH);
    for (int expert : new int[] {0, 17, 127}) {
      float[] gate = decoded(source, path + expert + ".w1", WIDTH, HIDDEN);
      float[] up = decoded(source, path + expert + ".w3", WIDTH, HIDDEN);
      float[] down = decoded(source, path + expert + ".w2", HIDDEN, WIDTH);
      assertThat(gate).isNotEqualTo(up);
      for (int row = 0; row < WIDTH; row++) {
        boolean interleaved = layout.equals("trt-edge-llm-sm110");
        int place = interleaved ? row / 64 * 128 + row % 64 : row;
        assertThat(row(fc1, expert, place, HIDDEN)).isEqualTo(row(up, row, HIDDEN));
        assertThat(row(fc1, expert, place + (interleaved ? 64 : WIDTH), HIDDEN)).isEqualTo(row(gate, row, HIDDEN));
      }

      for (int row = 0; row < HIDDEN; row++) {
        assertThat(row(fc2, expert, row, WIDTH)).isEqualTo(row(down, row, WIDTH));
      }
    }
  }

  private static NVFP4Tensor view(Map<String, StoredTensor> tensors, String name, int rows, int cols) {
    float[] alpha = new float[128];
    little(tensors.get(name + "alpha")).asFloatBuffer().get(alpha);
    return NVFP4Tensor.weights(128, rows, cols, Bytes.of(tensors.get(name + "qweights").data()),
        Bytes.of(tensors.get(name + "blocks_scale").data()), alpha);
  }

  private static float[] row(NVFP4Tensor tensor, int expert, int row, int cols) {
    float[] values = new float[cols];
    tensor.decodeRow(expert, row, values);
    return values;
  }

  private static float[] row(float[] matrix, int row, int cols) {
    return Arrays.copyOfRange(matrix, row * cols, (row + 1) * cols);
  }

  private static float[] decoded(Map<String, StoredTensor> tensors, String module, int rows, int cols) {
    ByteBuffer values = ByteBuffer.allocate(rows * cols * Float.BYTES).order(ByteOrder.nativeOrder());
    Nvfp4.decode(Nvfp4Recipe.MODELOPT, little(tensors.get(module + ".weight")),
        little(tensors.get(module + ".weight_scale")), rows, cols,
        little(tensors.get(module + ".weight_scale_2")).getFloat(), values.asFloatBuffer());
    float[] floats = new float[rows * cols];
    values.asFloatBuffer().get(floats);
    return floats;
  }

  @Test
  void namesComeFromAnExport() throws IOException {
    Path made = convert(gated, "trt-edge-llm-sm12x", "made");
    Map<String, StoredTensor> inOrder = new LinkedHashMap<>();
    Map<String, StoredTensor> named = CheckpointFiles.read(made.resolve(CONTAINER));
    for (TensorInfo tensor : header(made.resolve(CONTAINER)).tensors()) {
      String input = tensor.name().substring(tensor.name().lastIndexOf('.') + 1);
      inOrder.put("onnx::" + inOrder.size() + "_" + input, named.get(tensor.name()));
    }

    Path export = folder.resolve("export.safetensors");
    CheckpointFiles.write(export, inOrder);

    Path renamed = convert(gated, "trt-edge-llm-sm12x", "renamed", "--initializer-names", export.toString());

    Map<String, StoredTensor> found = CheckpointFiles.read(renamed.resolve(CONTAINER));
    assertThat(found.keySet()).containsExactlyElementsOf(inOrder.keySet());
    inOrder.forEach((name, tensor) -> assertThat(found.get(name).data()).as(name).isEqualTo(tensor.data()));
    assertSameTensors(gated, convert(renamed, "modelopt", "back"));
    SparkSubmitResult other =
        tryConvert(gated, "trt-edge-llm-sm12x", "other", "--initializer-names", gated.resolve(shard(gated)).toString());
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("Cannot take the name of model.layers.0.block_sparse_moe.experts.fc1_qweights from ");
    assertThat(folder.resolve("other")).doesNotExist();
  }

  private static String shard(Path output) {
    return Arrays.stream(output.toFile().list()).filter(name -> name.endsWith("00001.safetensors")
        || name.startsWith("model-00001")).findFirst().orElseThrow();
  }

  /** A run that met a scale that no runtime takes: once the source is mended, the same command does the rest. */
  @Test
  void whatIsFinishedIsNotWrittenAgain() throws IOException {
    Path input = Files.createDirectory(folder.resolve("input"));
    for (String name : gated.toFile().list()) {
      Files.copy(gated.resolve(name), input.resolve(name), StandardCopyOption.COPY_ATTRIBUTES);
    }

    LocatedTensor scales = Checkpoint.open(new Configuration(), input.toString())
        .tensor("model.layers.1.block_sparse_moe.experts.127.w2.weight_scale").orElseThrow();
    byte good = exchange(input.resolve(scales.file()), scales.offset() + 16 * 5 / 2 + 1, (byte) 0x7F);

    SparkSubmitResult failed = tryConvert(input, "cublas-128x4", "output");

    assertThat(failed.status()).isEqualTo(1);
    assertThat(failed.err()).startsWith("Invalid block scale in " + scales.name() + ": element [5, 1] is 0x7f, which is NaN");
    Path output = folder.resolve("output");
    assertThat(output.resolve("model.safetensors.index.json")).doesNotExist();
    Map<String, String> finished = Outputs.recorded(output);
    assertThat(finished).isNotEmpty();
    exchange(input.resolve(scales.file()), scales.offset() + 16 * 5 / 2 + 1, good);

    convert(input, "cublas-128x4", "output");

    assertThat(Outputs.identities(output, ".safetensors")).containsAllEntriesOf(finished);
    Outputs.assertSame(convert(gated, "cublas-128x4", "undisturbed"), output);
    Map<String, String> before = Outputs.identities(output, "");
    convert(input, "cublas-128x4", "output");
    assertThat(Outputs.identities(output, "")).isEqualTo(before);
    SparkSubmitResult other = tryConvert(input, "scales-8x4", "output");
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("holds a checkpoint of another plan (layout cublas-128x4 from ");
    Outputs.assertSame(
        convert(gated, "trt-edge-llm-sm12x", "other"), convert(input, "trt-edge-llm-sm12x", "output", "--overwrite"));
  }

  /** Puts a byte in the place of another; the file's time stays. */
  private static byte exchange(Path file, long place, byte value) throws IOException {
    FileTime time = Files.getLastModifiedTime(file);
    byte before;
    try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
      bytes.seek(place);
      before = bytes.readByte();
      bytes.seek(place);
      bytes.writeByte(value);
    }

    Files.setLastModifiedTime(file, time);
    return before;
  }

  @Test
  void whatCannotBeIsToldBeforeAnyWork() {
    SparkSubmitResult layout = tryConvert(gated, "marlin", "output");
    assertThat(layout.status()).isEqualTo(2);
    assertThat(layout.err()).contains("Invalid layout: marlin; known are modelopt, compressed-tensors, trt-edge-llm-sm110");
    SparkSubmitResult gate = tryConvert(gated, "blackwell-moe", "output");
    assertThat(gate.status()).isEqualTo(1);
    assertThat(gate.err()).startsWith("Cannot write model.layers.0.block_sparse_moe.experts in layout blackwell-moe: its "
        + "experts have a gate, the runtime takes those without (relu2)");
    SparkSubmitResult one = tryConvert(gated.resolve(shard(gated)), "modelopt", "output");
    assertThat(one.status()).isEqualTo(1);
    assertThat(one.err()).startsWith("Cannot convert one file of ").contains("give the folder");
    SparkSubmitResult plain = tryConvert(gatedSource, "modelopt", "output");
    assertThat(plain.status()).isEqualTo(1);
    assertThat(plain.err()).startsWith("Cannot convert: the input has no NVFP4 layers of a known layout");
    SparkSubmitResult few = new InProcess().run("quantize", "--input",
        CheckpointFiles.golden("qwen3_moe_bf16").toString(), "--output", folder.resolve("output").toString(), "--layout",
        "trt-edge-llm-sm110");
    assertThat(few.status()).isEqualTo(1);
    assertThat(few.err()).contains("Cannot write model.layers.0.mlp.experts in layout trt-edge-llm-sm110: it has 4 experts, "
        + "the runtime takes 128, 256; choose another layout");
    SparkSubmitResult names = new InProcess().run("quantize", "--input",
        CheckpointFiles.golden("qwen3_moe_bf16").toString(), "--output", folder.resolve("output").toString(),
        "--initializer-names", "x");
    assertThat(names.status()).isEqualTo(2);
    assertThat(names.err()).contains("Invalid --initializer-names: in layout modelopt no tensors are initializers");
    assertThat(folder.resolve("output")).doesNotExist();
  }

  /** The source's own tensors that are NVFP4 and no routed experts keep their names. */
  @Test
  void otherLayersStayModules() throws IOException {
    Path linears = quantize(CheckpointFiles.golden("qwen3_moe_bf16"), folder.resolve("linears"), "modelopt", "--targets",
        "linears");
    Path arranged = convert(linears, "trtllm-gen", "arranged");
    assertThat(CheckpointFiles.read(arranged)).containsKeys(
        "model.layers.0.self_attn.q_proj.weight_scale_2", "model.layers.1.mlp.experts.w13_weight");
    assertSameTensors(linears, convert(arranged, "modelopt", "back"));

    Path converted = convert(linears, "compressed-tensors", "ct");
    assertThat(json(converted, "config.json").at("/quantization_config/quant_method").asText())
        .isEqualTo("compressed-tensors");
    assertThat(converted.resolve("hf_quant_config.json")).doesNotExist();
    assertSameTensors(linears, convert(converted, "modelopt", "again"));
  }

  @Test
  void weightsAloneHaveNoInputScales() throws IOException {
    Path golden = CheckpointFiles.golden("qwen3_moe_bf16");
    Path weights = quantize(golden, folder.resolve("weights"), "modelopt", "--weight-only");

    Path arranged = convert(weights, "cublas-128x4", "arranged");

    assertSameTensors(weights, convert(arranged, "modelopt", "back"));
  }
}
