package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;

/** Checkpoints from layout to layout and back, through the whole job. */
class ConvertTest extends LayoutRuns {
  private static Path ungated;

  @BeforeAll
  static void quantizeUngated() throws IOException {
    Path source = synthesize("ungated-source", SyntheticFamily.NEMOTRON_H, new ModelShape(4, 128, 128, 192, 96));
    ungated = quantize(source, models.resolve("ungated"), "modelopt");
  }

  private static void assertGoodByManifest(Path output, Path source) {
    SparkSubmitResult result = new InProcess().run(
        "verify", "--quantized", output.toString(), "--manifest", "--source", source.toString());
    assertThat(result.status()).as(result.out() + result.err()).isZero();
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

  @ParameterizedTest
  @ValueSource(strings = {"trt-edge-llm-sm110", "marlin-edge", "marlin-vllm", "cublas-128x4", "scales-8x4", "trtllm-gen"})
  void gpuGivesTheSameFiles(String layout) throws IOException {
    Assumptions.assumeTrue(Gpu.answers(), "no GPU answers here");
    Path onCpu = convert(gated, layout, "on the CPU");

    SparkSubmitResult result = convertOn("cuda", layout);

    assertThat(result.status()).as(result.err()).isZero();
    Outputs.assertSame(onCpu, folder.resolve("cuda"));
  }

  @Test
  void deviceThatIsNotThereIsAnErrorBeforeAnyWork() {
    Assumptions.assumeFalse(Gpu.answers(), "a GPU answers here");

    SparkSubmitResult asked = convertOn("cuda", "marlin-vllm");
    SparkSubmitResult set = new InProcess().conf("spark.fp4.device", "cuda").run("convert", "--input", gated.toString(),
        "--to", "marlin-vllm", "--output", folder.resolve("cuda").toString());
    SparkSubmitResult rapids = convertOn("rapids", "marlin-vllm");

    assertThat(asked.status()).isEqualTo(1);
    assertThat(asked.err()).startsWith("Cannot run on device cuda: ").hasLineCount(1);
    assertThat(set.err()).isEqualTo(asked.err());
    assertThat(rapids.status()).isEqualTo(2);
    assertThat(rapids.err()).startsWith("Invalid --device: rapids (");
    assertThat(folder.resolve("cuda")).doesNotExist();
  }

  private SparkSubmitResult convertOn(String device, String layout) {
    return new InProcess().run("convert", "--input", gated.toString(), "--to", layout, "--device", device,
        "--output", folder.resolve(device).toString(), "--max-shard-size", "6MB");
  }

  /** Its codes and scales are the other arithmetic's, which is no difference. */
  @Test
  void conversionToOtherArithmeticIsVerifiedAgainstTheFirstSource() throws IOException {
    Path converted = convert(gated, "compressed-tensors", "converted");

    assertVerified(gatedSource, converted);
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
  void secondDescriptionThatIsNoneIsToldBeforeAnyWork() throws IOException {
    Path input = Files.createDirectory(folder.resolve("input"));
    for (String name : gated.toFile().list()) {
      Files.copy(gated.resolve(name), input.resolve(name));
    }

    for (String content : List.of("{\"quantization\":", "[]")) {
      Files.writeString(input.resolve("hf_quant_config.json"), content);
      SparkSubmitResult refused = tryConvert(input, "modelopt", "output");
      assertThat(refused.status()).isEqualTo(1);
      assertThat(refused.err()).startsWith("Cannot convert: file:" + input + "/hf_quant_config.json is no JSON");
      assertThat(folder.resolve("output")).doesNotExist();
    }
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
    assertThat(plain.err())
        .startsWith("Cannot convert file:" + gatedSource + ": it has no NVFP4 layers of a known layout");
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
