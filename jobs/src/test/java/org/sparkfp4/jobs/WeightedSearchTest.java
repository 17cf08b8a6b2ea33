package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.calibration.Activations;

/** {@code --scale-search weighted} from activations to a checkpoint, on a model of 2 layers and 4 experts. */
class WeightedSearchTest {
  private static final String LAYER = "model.layers.0.mlp";
  private static final String EXPERT = LAYER + ".experts.1.";
  private static final String MODEL = CheckpointFiles.golden("qwen3_moe_bf16").toString();

  @TempDir
  private Path folder;

  private Path statistics;

  /** Layer 0: expert 3 sees no token, some columns are large. Layer 1: nothing is known. */
  @BeforeEach
  void calibrate() throws IOException {
    Path activations = Files.createDirectories(folder.resolve("activations"));
    int[][] routing = new int[64][1];
    Activations input = Activations.random(64, 128, 1);
    for (int token = 0; token < 64; token++) {
      routing[token][0] = token % 3;
      input = input.with(token, 9, 50f + token).with(token, 40, 20f - token);
    }

    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    tensors.put(LAYER + ".input", input.bf16());
    tensors.put(LAYER + ".routing", Activations.routing(routing));
    CheckpointFiles.write(activations.resolve("a.safetensors"), tensors);
    statistics = folder.resolve("statistics");
    SparkSubmitResult result = new InProcess().run("calibrate", "--input", activations.toString(), "--output",
        statistics.toString(), "--model", MODEL, "--hessian", "local");
    assertThat(result.status()).as(result.err()).isZero();
  }

  @Test
  void weighsWhereThereAreStatisticsAndSweepsElsewhere() throws IOException {
    Map<String, StoredTensor> swept = CheckpointFiles.read(quantize("swept", "--scale-search", "sweep"));
    Path diagonal = quantize("diagonal", "--scale-search", "weighted");
    Path hessian = quantize("hessian", "--scale-search", "weighted", "--weighting", "hessian");
    for (Path output : List.of(diagonal, hessian)) {
      Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
      for (String name : tensors.keySet()) {
        boolean weighed = name.matches("model.layers.0.mlp.experts.[012].(gate|up)_proj.weight_scale");
        if (name.endsWith("weight_scale")) {
          assertThat(Arrays.equals(tensors.get(name).data(), swept.get(name).data())).as(name).isEqualTo(!weighed);
        }
      }

      assertVerified(Path.of(MODEL), output);
    }

    assertThat(CheckpointFiles.read(diagonal).get(EXPERT + "up_proj.weight_scale").data())
        .isNotEqualTo(CheckpointFiles.read(hessian).get(EXPERT + "up_proj.weight_scale").data());
  }

  @Test
  void cutUnitsAndOtherTiersGiveTheSameBytes() throws IOException {
    Path expected = quantize("expected", "--scale-search", "weighted");
    for (String conf : List.of("spark.fp4.unitBytes=3000", "spark.fp4.cpu.tier=java", "spark.fp4.columnar=off",
        "spark.fp4.read=pread")) {
      Path output = folder.resolve(conf);
      InProcess run = new InProcess().conf(conf.split("=")[0], conf.split("=")[1]);
      SparkSubmitResult result = run.run(arguments(output, "--scale-search", "weighted"));
      assertThat(result.status()).as(result.err()).isZero();
      Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
      CheckpointFiles.read(expected).forEach((name, tensor) ->
          assertThat(tensors.get(name).data()).as("%s, %s", conf, name).isEqualTo(tensor.data()));
    }
  }

  @Test
  void unitsWithoutStatisticsAreListed() {
    SparkSubmitResult result =
        new InProcess().run(arguments(folder.resolve("dry"), "--scale-search", "weighted", "--dry-run"));
    assertThat(result.out()).contains("scale search weighted")
        .contains("13 units without statistics, or that saw no token, swept without weights: "
            + "model.layers.0.mlp.experts.*.down_proj: 0, 1, 2; model.layers.0.mlp.experts: 3; "
            + "model.layers.1.mlp.experts: 0, 1, 2, 3\n");
  }

  @Test
  void theWeightingAndTheStatisticsChangeThePlan() throws IOException {
    Path output = quantize("once", "--scale-search", "weighted");
    SparkSubmitResult other =
        new InProcess().run(arguments(output, "--scale-search", "weighted", "--weighting", "hessian"));
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("--weighting diagonal there, hessian now");
    other = new InProcess().run(arguments(output, "--scale-search", "weighted", "--input-scale", "percentile"));
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("--input-scale amax there, percentile now");
    Path swept = quantize("swept", "--scale-search", "sweep");
    other = new InProcess().run("quantize", "--input", MODEL, "--output", swept.toString(), "--scale-search", "sweep");
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("the statistics of activations are others");
  }

  @Test
  void aValueThatCannotBeIsRefused() throws IOException {
    Path file = statistics.resolve("statistics-00001-of-00001.safetensors");
    Map<String, StoredTensor> tensors = CheckpointFiles.read(statistics);
    byte[] bytes = Files.readAllBytes(file);
    byte[] known = tensors.get(EXPERT + "gate_proj.input.mean_square").data();
    for (int at = 0; at + known.length <= bytes.length; at++) {
      if (Arrays.equals(bytes, at, at + known.length, known, 0, known.length)) {
        ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).putFloat(at + 4 * 7, -1);
      }
    }

    byte[] own = Files.readAllBytes(file);
    Files.write(file, bytes);
    SparkSubmitResult result =
        new InProcess().run(arguments(folder.resolve("changed"), "--scale-search", "weighted"));
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).contains(file + ": its SHA-256 is not the one in statistics.json; calibrate anew")
        .hasLineCount(1);
    assertThat(folder.resolve("changed")).doesNotExist();

    Files.write(file, own);
    ForgedStatistics.replace(file, bytes);
    result = new InProcess().run(arguments(folder.resolve("refused"), "--scale-search", "weighted"));
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).contains("Invalid statistics of " + EXPERT + "{gate_proj,up_proj}: -1.0 for column 7")
        .hasLineCount(1);
    assertThat(folder.resolve("refused/model.safetensors.index.json")).doesNotExist();
  }

  private Path quantize(String name, String... options) {
    Path output = folder.resolve(name);
    SparkSubmitResult result = new InProcess().run(arguments(output, options));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }

  private String[] arguments(Path output, String... options) {
    List<String> arguments = new ArrayList<>(List.of(
        "quantize", "--input", MODEL, "--output", output.toString(), "--statistics", statistics.toString()));
    arguments.addAll(List.of(options));
    return arguments.toArray(new String[0]);
  }
}
