package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.calibration.Activations;
import org.sparkfp4.formats.Bytes;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.NVFP4Tensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.safetensors.DType;

class QuantizeActivationsTest {
  private static final String DOWN = "model.layers.0.mlp.experts.3.down_proj";

  @TempDir
  private Path folder;

  private Path input;

  @BeforeEach
  void makeFolder() throws IOException {
    input = Files.createDirectories(folder.resolve("activations"));
  }

  @ParameterizedTest
  @CsvSource({"256m, auto, auto", "5000, auto, auto", "256m, off, java", "5000, off, scalar"})
  void everyTensorGetsItsOwnScale(String unitBytes, String columnar, String tier) throws IOException {
    Activations x = Activations.random(70, 96, 1);
    Activations y = Activations.random(33, 32, 2);
    Map<String, StoredTensor> first = new LinkedHashMap<>();
    first.put(DOWN + ".input", x.bf16());
    first.put("model.layers.0.mlp.routing", Activations.routing(new int[4][2]));
    first.put("silent.input", new StoredTensor(DType.BF16, List.of(0L, 32L), new byte[0]));
    CheckpointFiles.write(input.resolve("a.safetensors"), first);
    CheckpointFiles.write(input.resolve("b.safetensors"), Map.of("lm_head.input", y.f32()));

    InProcess quantize = new InProcess().conf("spark.fp4.unitBytes", unitBytes).conf("spark.fp4.columnar", columnar)
        .conf("spark.fp4.cpu.tier", tier);
    SparkSubmitResult result = quantize.run(
        "quantize-activations", "--input", input.toString(), "--output", folder.resolve("nvfp4").toString());
    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains("carried over silent.input: no tokens");

    Map<String, StoredTensor> output = CheckpointFiles.read(folder.resolve("nvfp4"));
    requireEncoded(output, DOWN, x, amax(x));
    requireEncoded(output, "lm_head", y, amax(y));
    assertThat(output).hasSize(8).containsKeys("silent.input", "model.layers.0.mlp.routing");
    assertThat(folder.resolve("nvfp4/_sparkfp4")).doesNotExist();
  }

  /** Larger than anything in the tensor, and smaller: then the largest values saturate. */
  @ParameterizedTest
  @CsvSource({"7, auto, 256m", "0.01, auto, 256m", "0.01, java, 4000", "0.01, scalar, 256m"})
  void calibratedScalesAreUsed(float factor, String tier, String unitBytes) throws IOException {
    Activations x = Activations.random(64, 96, 3);
    Activations calibrated = x.rows(0, 64);
    float[][] scaled = new float[64][96];
    for (int token = 0; token < 64; token++) {
      for (int i = 0; i < 96; i++) {
        scaled[token][i] = factor * x.values()[token][i];
      }
    }

    Path calibration = Files.createDirectories(folder.resolve("calibration"));
    CheckpointFiles.write(
        calibration.resolve("a.safetensors"), Map.of(DOWN + ".input", calibrated.withValues(scaled).f32()));
    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of(
        DOWN + ".input", x.bf16(),
        "model.layers.0.mlp.experts.4.down_proj.input", x.bf16(),
        "lm_head.input", x.bf16()));
    Path statistics = folder.resolve("statistics");
    SparkSubmitResult calibrate = new InProcess().run(
        "calibrate", "--input", calibration.toString(), "--output", statistics.toString(), "--hessian", "none");
    assertThat(calibrate.status()).as(calibrate.err()).isZero();
    SparkSubmitResult result = new InProcess().conf("spark.fp4.cpu.tier", tier).conf("spark.fp4.unitBytes", unitBytes)
        .run(
            "quantize-activations", "--input", input.toString(), "--output", folder.resolve("nvfp4").toString(),
            "--statistics", statistics.toString());
    assertThat(result.status()).as(result.err()).isZero();

    float amax = amax(calibrated.withValues(scaled));
    Map<String, StoredTensor> output = CheckpointFiles.read(folder.resolve("nvfp4"));
    requireEncoded(output, DOWN, x, amax);
    requireEncoded(output, "model.layers.0.mlp.experts.4.down_proj", x, amax);
    requireEncoded(output, "lm_head", x, amax(x));
    assertThat(result.out()).contains("no statistics of lm_head: its scale is that of its own largest magnitude");
  }

  /** Scales in Marlin's words: the view of TensorRT Edge-LLM reads the values of the linear layout. */
  @ParameterizedTest
  @ValueSource(strings = {"256m", "4000"})
  void wordsOfScalesAreThoseThatTheViewReads(String unitBytes) throws IOException {
    Activations x = Activations.random(70, 192, 9);
    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of(DOWN + ".input", x.bf16()));
    Map<String, Map<String, StoredTensor>> outputs = new LinkedHashMap<>();
    for (String layout : List.of("linear", "trt-edge-llm")) {
      SparkSubmitResult result = new InProcess().conf("spark.fp4.unitBytes", unitBytes).run(
          "quantize-activations", "--input", input.toString(), "--output", folder.resolve(layout).toString(), "--layout",
          layout);
      assertThat(result.status()).as(result.err()).isZero();
      outputs.put(layout, CheckpointFiles.read(folder.resolve(layout)));
    }

    requireEncoded(outputs.get("linear"), DOWN, x, amax(x));
    Map<String, StoredTensor> words = outputs.get("trt-edge-llm");
    byte[] linear = outputs.get("linear").get(DOWN + ".input_scale").data();
    assertThat(words.get(DOWN + ".input_scale").data()).isNotEqualTo(linear);
    float global = little(words.get(DOWN + ".input_global_scale")).getFloat();
    NVFP4Tensor view = NVFP4Tensor.activations(70, 192, Bytes.of(words.get(DOWN + ".input_packed").data()),
        Bytes.of(words.get(DOWN + ".input_scale").data()), global);
    ByteBuffer values = ByteBuffer.allocate(70 * 192 * Float.BYTES);
    Nvfp4.decode(Nvfp4Recipe.MODELOPT, little(outputs.get("linear").get(DOWN + ".input_packed")),
        ByteBuffer.wrap(linear), 70, 192, global, values.asFloatBuffer());
    float[] row = new float[192];
    float[] expected = new float[192];
    for (int token = 0; token < 70; token++) {
      view.decodeRow(0, token, row);
      values.asFloatBuffer().get(token * 192, expected);
      assertThat(row).as("token %d", token).isEqualTo(expected);
    }

    String header = new String(
        Files.readAllBytes(folder.resolve("trt-edge-llm/model-00001-of-00001.safetensors")), 8, 100,
        StandardCharsets.UTF_8);
    assertThat(header).contains("\"sparkfp4.layout\":\"trt-edge-llm\"");
  }

  @Test
  void wordsNeedWholeTiles() throws IOException {
    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of("m.input", Activations.random(8, 32, 1).bf16()));
    SparkSubmitResult result = new InProcess().run(
        "quantize-activations", "--input", input.toString(), "--output", folder.resolve("x").toString(), "--layout",
        "trt-edge-llm");
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err())
        .startsWith("Cannot write m.input in layout trt-edge-llm: K is 32, which must be a multiple of 64");
    assertThat(folder.resolve("x")).doesNotExist();
  }

  private static ByteBuffer little(StoredTensor tensor) {
    return ByteBuffer.wrap(tensor.data()).order(ByteOrder.LITTLE_ENDIAN);
  }

  @Test
  void aFinishedOutputStaysAndAnotherPlanIsRefused() throws IOException {
    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of("m.input", Activations.random(8, 32, 1).bf16()));
    String output = folder.resolve("nvfp4").toString();
    assertThat(new InProcess().run("quantize-activations", "--input", input.toString(), "--output", output).status())
        .isZero();
    Path shard = folder.resolve("nvfp4/model-00001-of-00001.safetensors");
    long written = Files.getLastModifiedTime(shard).toMillis();
    assertThat(new InProcess().run("quantize-activations", "--input", input.toString(), "--output", output).status())
        .isZero();
    assertThat(Files.getLastModifiedTime(shard).toMillis()).isEqualTo(written);

    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of("m.input", Activations.random(9, 32, 1).bf16()));
    SparkSubmitResult other =
        new InProcess().run("quantize-activations", "--input", input.toString(), "--output", output);
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("holds a checkpoint of another plan").contains("--overwrite");

    // by the name that the option has
    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of("m.input", Activations.random(8, 64, 1).bf16()));
    assertThat(new InProcess().run("quantize-activations", "--input", input.toString(), "--output", output,
        "--layout", "trt-edge-llm").err())
        .contains("of another plan (--layout linear there, trt-edge-llm now)");
  }

  /** A batch each: an output has one tensor of a name, so each file gets one; scales of statistics are those of all. */
  @Test
  void filesOfTheSameNamesBecomeFoldersOfTheirOwn() throws IOException {
    Activations x = Activations.random(8, 32, 1);
    Activations y = Activations.random(5, 32, 2);
    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of("m.input", x.bf16()));
    CheckpointFiles.write(input.resolve("b.safetensors"), Map.of("m.input", y.bf16(), "n.input", y.bf16()));
    Path output = folder.resolve("nvfp4");
    SparkSubmitResult own =
        new InProcess().run("quantize-activations", "--input", input.toString(), "--output", output.toString());
    assertThat(own.status()).as(own.err()).isZero();
    assertThat(output.toFile().list()).containsExactlyInAnyOrder("a", "b");
    requireEncoded(CheckpointFiles.read(output.resolve("a")), "m", x, amax(x));
    requireEncoded(CheckpointFiles.read(output.resolve("b")), "m", y, amax(y));
    requireEncoded(CheckpointFiles.read(output.resolve("b")), "n", y, amax(y));
    assertThat(own.out()).contains("file:" + output + "/a: 1 shard", "file:" + output + "/b: ");
    SparkSubmitResult top = new InProcess().run("inspect", output.toString());
    assertThat(top.status()).isEqualTo(1);
    assertThat(top.err()).hasLineCount(1).startsWith("Cannot inspect file:" + output
        + " as one checkpoint: it holds 2 outputs, each in a folder of its own; give one of them: a, b");
    assertThat(new InProcess().run("inspect", output.resolve("a").toString()).out()).contains("layout linear");

    Path statistics = folder.resolve("statistics");
    assertThat(new InProcess().run("calibrate", "--input", input.toString(), "--output", statistics.toString()).status())
        .isZero();
    Path calibrated = folder.resolve("calibrated");
    SparkSubmitResult shared = new InProcess().run("quantize-activations", "--input", input.toString(), "--output",
        calibrated.toString(), "--statistics", statistics.toString());
    assertThat(shared.status()).as(shared.err()).isZero();
    float amax = Math.max(amax(x), amax(y));
    requireEncoded(CheckpointFiles.read(calibrated.resolve("a")), "m", x, amax);
    requireEncoded(CheckpointFiles.read(calibrated.resolve("b")), "m", y, amax);

    // one for all files has no place among them, nor they in it
    Path one = folder.resolve("one");
    assertThat(new InProcess().run("quantize-activations", "--input", input.resolve("a.safetensors").toString(),
        "--output", one.toString()).status()).isZero();
    SparkSubmitResult mixed =
        new InProcess().run("quantize-activations", "--input", input.toString(), "--output", one.toString());
    assertThat(mixed.status()).isEqualTo(1);
    assertThat(mixed.err()).startsWith("Cannot write to file:" + one + ": it holds a checkpoint").hasLineCount(1);
  }

  /** A folder that is the output's own, above it, or a run's. */
  @ParameterizedTest
  @ValueSource(strings = {"", ".", "..", "_sparkfp4"})
  void filesWhoseFoldersWouldBeElsewhereAreRefused(String stem) throws IOException {
    Map<String, StoredTensor> tensors = Map.of("m.input", Activations.random(8, 32, 1).bf16());
    CheckpointFiles.write(input.resolve("a.safetensors"), tensors);
    CheckpointFiles.write(input.resolve(stem + ".safetensors"), tensors);
    Path output = Files.createDirectories(folder.resolve("above")).resolve("output");

    SparkSubmitResult refused = new InProcess().run(
        "quantize-activations", "--input", input.toString(), "--output", output.toString(), "--overwrite");

    assertThat(refused.status()).isEqualTo(1);
    assertThat(refused.err())
        .startsWith("Cannot write an output of file:" + input.resolve(stem + ".safetensors"))
        .contains("rename the file").hasLineCount(1);
    assertThat(folder.resolve("above")).isEmptyDirectory();
  }

  @Test
  void allOutputsAreAskedForBeforeTheFirstIsWritten() throws IOException {
    Map<String, StoredTensor> tensors = Map.of("m.input", Activations.random(8, 32, 1).bf16());
    CheckpointFiles.write(input.resolve("a.safetensors"), tensors);
    CheckpointFiles.write(input.resolve("b.safetensors"), tensors);
    Path foreign = Files.createDirectories(folder.resolve("output/b")).resolve("mine.txt");
    Files.writeString(foreign, "mine");

    SparkSubmitResult refused = new InProcess().run(
        "quantize-activations", "--input", input.toString(), "--output", folder.resolve("output").toString());

    assertThat(refused.status()).isEqualTo(1);
    assertThat(folder.resolve("output/a")).doesNotExist();
    assertThat(foreign).hasContent("mine");
  }

  @Test
  void whatCannotBeIsToldInALine() throws IOException {
    CheckpointFiles.write(input.resolve("a.safetensors"), Map.of("m.input", Activations.random(8, 32, 1).bf16()));
    CheckpointFiles.write(
        input.resolve("a.safetensors"),
        Map.of("m.input", Activations.random(8, 32, 1).with(2, 5, Float.NEGATIVE_INFINITY).bf16()));
    SparkSubmitResult infinite = new InProcess().run(
        "quantize-activations", "--input", input.toString(), "--output", folder.resolve("x").toString());
    assertThat(infinite.status()).isEqualTo(1);
    assertThat(infinite.err()).contains("m.input: element [2, 5] is -Infinity");
    assertThat(folder.resolve("x/model.safetensors.index.json")).doesNotExist();

    SparkSubmitResult rule = new InProcess().run(
        "quantize-activations", "--input", input.toString(), "--output", folder.resolve("x").toString(),
        "--input-scale", "median");
    assertThat(rule.status()).isEqualTo(2);
    assertThat(rule.err()).contains("Invalid input scale: median; known are amax, percentile, headroom");
  }

  private static void requireEncoded(
      Map<String, StoredTensor> output, String module, Activations x, float amax) {
    ByteBuffer packed = ByteBuffer.allocate(x.tokens() * x.cols() / 2);
    ByteBuffer scales = ByteBuffer.allocate(x.tokens() * x.cols() / 16);
    float globalScale = Nvfp4Recipe.MODELOPT.globalScale(amax, ElementType.F32);
    Nvfp4.encode(
        Nvfp4Recipe.MODELOPT, ElementType.F32, ByteBuffer.wrap(x.f32().data()), x.tokens(), x.cols(), globalScale,
        packed, scales, null);
    StoredTensor codes = output.get(module + ".input_packed");
    assertThat(codes.dtype()).isEqualTo(DType.U8);
    assertThat(codes.shape()).containsExactly((long) x.tokens(), x.cols() / 2L);
    assertThat(codes.data()).isEqualTo(packed.array());
    StoredTensor blocks = output.get(module + ".input_scale");
    assertThat(blocks.dtype()).isEqualTo(DType.F8_E4M3);
    assertThat(blocks.shape()).containsExactly((long) x.tokens(), x.cols() / 16L);
    assertThat(blocks.data()).isEqualTo(scales.array());
    assertThat(ByteBuffer.wrap(output.get(module + ".input_global_scale").data()).order(ByteOrder.LITTLE_ENDIAN)
        .getFloat()).isEqualTo(globalScale);
  }

  private static float amax(Activations x) {
    float amax = 0;
    for (float[] token : x.values()) {
      for (float value : token) {
        amax = Math.max(amax, Math.abs(value));
      }
    }

    return amax;
  }
}
