package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.calibration.Activations;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.E2M1;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** From random weights and activations to scales and codes that know of them. */
class GptqTest {
  private static final int HIDDEN = 128;
  private static final int INTERMEDIATE = 64;
  private static final int TOKENS = 1300;
  private static final String EXPERTS = "model.layers.0.mlp.experts.";

  @TempDir
  private Path folder;

  private Path model;
  private Path statistics;
  private Activations inputs;

  /** Expert 0 and 1 get every token but twenty, of which expert 2 gets each; expert 3 gets none. */
  @BeforeEach
  void calibrate() throws IOException {
    model = folder.resolve("model");
    new SyntheticCheckpoint(
        SyntheticFamily.QWEN3_MOE, new ModelShape(1, 4, HIDDEN, INTERMEDIATE, 64), DType.BF16, 3, 1 << 30)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(model.toUri()));
    inputs = Activations.mixed(2 * TOKENS, HIDDEN, 1);
    int[][] routing = new int[TOKENS][2];
    for (int token = 0; token < TOKENS; token++) {
      routing[token] = token < 20 ? new int[] {0, 2} : new int[] {0, 1};
    }

    Path activations = Files.createDirectories(folder.resolve("activations"));
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    tensors.put("model.layers.0.mlp.input", inputs.rows(0, TOKENS).bf16());
    tensors.put("model.layers.0.mlp.routing", Activations.routing(routing));
    tensors.put(EXPERTS + "0.down_proj.input", Activations.mixed(TOKENS, INTERMEDIATE, 2).bf16());
    CheckpointFiles.write(activations.resolve("a.safetensors"), tensors);
    statistics = folder.resolve("statistics");
    run("calibrate", "--input", activations.toString(), "--output", statistics.toString(), "--model", model.toString(),
        "--hessian", "full");
  }

  @ParameterizedTest
  @CsvSource({"modelopt, 256m, auto", "compressed-tensors, 3000, off"})
  void eachKindOfStatisticsLowersTheErrorOfTheOutputs(String layout, String unitBytes, String columnar)
      throws IOException {
    InProcess quantize = new InProcess().conf("spark.fp4.unitBytes", unitBytes).conf("spark.fp4.columnar", columnar);
    Path sweep = quantize(quantize, "sweep", "--layout", layout);
    Path diagonal = quantize(quantize, "weighted", "--layout", layout, "--statistics", statistics.toString());
    Path local = quantize(
        quantize, "weighted", "--layout", layout, "--statistics", statistics.toString(), "--weighting", "hessian");
    Path gptq = quantize(quantize, "gptq", "--layout", layout, "--statistics", statistics.toString());

    for (String layer : List.of("0.gate_proj", "0.up_proj", "1.up_proj")) {
      double bySweep = outputError(sweep, layout, EXPERTS + layer);
      double byDiagonal = outputError(diagonal, layout, EXPERTS + layer);
      double byBlocks = outputError(local, layout, EXPERTS + layer);
      double byGptq = outputError(gptq, layout, EXPERTS + layer);
      assertThat(byDiagonal).as(layer).isLessThan(0.9 * bySweep);
      assertThat(byBlocks).as(layer).isLessThan(1.01 * byDiagonal);
      assertThat(byGptq).as(layer).isLessThan(0.9 * byBlocks);
    }

    // few tokens: the weighted search's bytes; no token: those of a sweep
    Map<String, StoredTensor> codes = CheckpointFiles.read(gptq);
    requireSame(codes, CheckpointFiles.read(local), EXPERTS + "2.gate_proj");
    requireSame(codes, CheckpointFiles.read(sweep), EXPERTS + "3.up_proj");
    for (Path output : List.of(sweep, diagonal, local, gptq)) {
      run("verify", "--source", model.toString(), "--quantized", output.toString());
    }
  }

  @Test
  void layersThatKeepTheSearchsCodesAreCountedAndNamed() throws IOException {
    SparkSubmitResult result = run(
        "quantize", "--input", model.toString(), "--output", folder.resolve("gptq").toString(), "--scale-search",
        "gptq", "--statistics", statistics.toString());
    assertThat(result.out())
        .contains("GPTQ: 5 of 12 layers" + System.lineSeparator())
        .contains("weighted, with fewer tokens than 4 K (7): ")
        .contains(EXPERTS + "2.gate_proj", EXPERTS + "3.down_proj");
    assertThat(Files.readString(folder.resolve("gptq/sparkfp4-manifest.json")))
        .contains("\"gptqRows\" : 64", "\"gptqRows\" : 0", "\"damping\" : 0.05");
    Path again = quantize(new InProcess(), "gptq", "--statistics", statistics.toString());
    assertThat(CheckpointFiles.read(again).get(EXPERTS + "0.up_proj.weight").data())
        .isEqualTo(CheckpointFiles.read(folder.resolve("gptq")).get(EXPERTS + "0.up_proj.weight").data());

    SparkSubmitResult damped = new InProcess().run(
        "quantize", "--input", model.toString(), "--output", folder.resolve("gptq").toString(), "--scale-search",
        "gptq", "--statistics", statistics.toString(), "--gptq-damping", "0.1");
    assertThat(damped.status()).isEqualTo(1);
    assertThat(damped.err()).contains("of another plan", "--gptq-damping 0.05 there, 0.1 now");
  }

  @Test
  void hessiansThatCannotBeEndTheRun() throws IOException {
    Path file = statistics.resolve("statistics-00001-of-00001.safetensors");
    var tensor = org.sparkfp4.checkpoint.Checkpoint
        .open(new org.apache.hadoop.conf.Configuration(), file.toString())
        .tensor(EXPERTS + "0.gate_proj.input.hessian_held_out").orElseThrow();
    byte[] bytes = Files.readAllBytes(file);
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN)
        .putFloat(Math.toIntExact(tensor.offset()) + 4 * (HIDDEN * 7 + 11), Float.NaN);
    ForgedStatistics.replace(file, bytes);

    SparkSubmitResult result = new InProcess().run(
        "quantize", "--input", model.toString(), "--output", folder.resolve("gptq").toString(), "--scale-search",
        "gptq", "--statistics", statistics.toString());
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).contains("Invalid statistics of " + EXPERTS + "0.{gate_proj,up_proj}: NaN for column 11");
    assertThat(folder.resolve("gptq/model.safetensors.index.json")).doesNotExist();
  }

  @Test
  void whatGptqNeedsIsAskedForBeforeAnyWork() throws IOException {
    String output = folder.resolve("gptq").toString();
    SparkSubmitResult without = new InProcess().run(
        "quantize", "--input", model.toString(), "--output", output, "--scale-search", "gptq");
    assertThat(without.status()).isEqualTo(2);
    assertThat(without.err()).contains("Invalid --scale-search: gptq takes what calibrate found out");
    SparkSubmitResult damping = new InProcess().run(
        "quantize", "--input", model.toString(), "--output", output, "--scale-search", "gptq", "--statistics",
        statistics.toString(), "--gptq-damping", "0");
    assertThat(damping.status()).isEqualTo(2);
    assertThat(damping.err()).contains("Invalid --gptq-damping: 0.0, must be above 0 and at most 1");

    Path local = folder.resolve("local");
    run("calibrate", "--input", folder.resolve("activations").toString(), "--output", local.toString(), "--model",
        model.toString());
    SparkSubmitResult noHessians = new InProcess().run(
        "quantize", "--input", model.toString(), "--output", output, "--scale-search", "gptq", "--statistics",
        local.toString());
    assertThat(noHessians.status()).isEqualTo(1);
    assertThat(noHessians.err())
        .contains("by GPTQ: ", "calibrate with --hessian full, or choose --scale-search weighted");
    assertThat(folder.resolve("gptq")).doesNotExist();
  }

  private Path quantize(InProcess quantize, String search, String... options) {
    Path output = folder.resolve("nvfp4 " + search + " of " + options.length + " options");
    List<String> arguments = new ArrayList<>(List.of(
        "quantize", "--input", model.toString(), "--output", output.toString(), "--scale-search", search));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = quantize.run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }

  private static SparkSubmitResult run(String... arguments) {
    SparkSubmitResult result = new InProcess().run(arguments);
    assertThat(result.status()).as(result.out() + result.err()).isZero();
    return result;
  }

  private static void requireSame(
      Map<String, StoredTensor> one, Map<String, StoredTensor> other, String module) {
    List<String> names = one.keySet().stream()
        .filter(name -> name.startsWith(module + ".weight"))
        .toList();
    assertThat(names).hasSize(3);
    for (String name : names) {
      assertThat(one.get(name).data()).as(name).isEqualTo(other.get(name).data());
    }
  }

  /** The sum of the squared errors of a layer's outputs, of inputs that calibration has not seen. */
  private double outputError(Path output, String layout, String module) throws IOException {
    Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
    boolean modelOpt = layout.equals("modelopt");
    Nvfp4Recipe recipe = modelOpt ? Nvfp4Recipe.MODELOPT : Nvfp4Recipe.COMPRESSED_TENSORS;
    byte[] codes = tensors.get(module + (modelOpt ? ".weight" : ".weight_packed")).data();
    byte[] scales = tensors.get(module + ".weight_scale").data();
    String scalar = module + (modelOpt ? ".weight_scale_2" : ".weight_global_scale");
    float globalScale = little(tensors.get(scalar)).getFloat();
    ByteBuffer weights = little(CheckpointFiles.read(model).get(module + ".weight"));
    double[] errors = new double[codes.length * 2];
    for (int i = 0; i < errors.length; i++) {
      float d = recipe.dequantFactor(scales[i / 16], globalScale);
      errors[i] = BFloat16.toFloat(weights.getShort(2 * i)) - E2M1.decode(codes[i / 2] >> i % 2 * 4) * d;
    }

    double total = 0;
    for (float[] x : inputs.rows(TOKENS, 2 * TOKENS).values()) {
      for (int row = 0; row < INTERMEDIATE; row++) {
        double sum = 0;
        for (int i = 0; i < HIDDEN; i++) {
          sum += errors[row * HIDDEN + i] * x[i];
        }

        total += sum * sum;
      }
    }

    return total;
  }

  private static ByteBuffer little(StoredTensor tensor) {
    return ByteBuffer.wrap(tensor.data()).order(ByteOrder.LITTLE_ENDIAN);
  }
}
