package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;
import static org.sparkfp4.jobs.Verified.verify;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;

/** {@code --scale-search} through the whole job, and what {@code verify} makes of it. */
class ScaleSearchTest {
  private static final String SCALES = "model.layers.0.mlp.experts.0.down_proj.weight_scale";

  @TempDir
  private Path folder;

  @ParameterizedTest
  @CsvSource({"qwen3_moe_bf16, modelopt, sweep", "qwen3_moe_bf16, modelopt, four-over-six",
      "qwen3_moe_bf16, compressed-tensors, sweep", "qwen3_moe_bf16, compressed-tensors, four-over-six",
      "deepseek_v3_fp8, modelopt, sweep", "kimi_k25_int4, compressed-tensors, sweep",
      "kimi_k25_int4, modelopt, four-over-six", "kimi_k3_mxfp4, modelopt, sweep"})
  void isWhatVerifyFindsWithAndWithoutManifest(String model, String layout, String search) throws Exception {
    Path source = CheckpointFiles.golden(model);
    Path output = quantize(source, "--layout", layout, "--scale-search", search);

    assertVerified(source, output);
    Files.delete(output.resolve("sparkfp4-manifest.json"));
    Files.delete(output.resolve("sparkfp4-manifest.json.sha256"));
    assertVerified(source, output);
  }

  /** Cut units are searched as whole ones are, on columns and row by row, by any tier. */
  @Test
  void bytesDoNotDependOnTheWay() throws Exception {
    Path source = CheckpointFiles.golden("qwen3_moe_bf16");
    Path expected = quantize(source);
    for (Map<String, String> conf : List.of(Map.of("spark.fp4.cpu.tier", "java"), Map.of("spark.fp4.unitBytes", "3000"),
        Map.of("spark.fp4.columnar", "off"))) {
      Path output = Files.createTempDirectory(folder, "other").resolve("nvfp4");
      InProcess run = new InProcess();
      conf.forEach(run::conf);
      SparkSubmitResult result = run.run("quantize", "--input", source.toString(), "--output", output.toString());
      assertThat(result.status()).as(result.err()).isZero();
      assertThat(result.out()).contains("scale search sweep");
      Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
      CheckpointFiles.read(expected).forEach((name, tensor) ->
          assertThat(tensors.get(name).data()).as("%s, %s", conf, name).isEqualTo(tensor.data()));
    }
  }

  @Test
  void verifySeesAScaleThatIsNotTheBest() throws Exception {
    Path source = CheckpointFiles.golden("qwen3_moe_bf16");
    Path output = quantize(source);
    Path changed = Files.createTempDirectory(folder, "changed");
    Files.copy(output.resolve("config.json"), changed.resolve("config.json"));
    Files.copy(output.resolve("hf_quant_config.json"), changed.resolve("hf_quant_config.json"));
    Map<String, StoredTensor> tensors = CheckpointFiles.read(output);
    tensors.get(SCALES).data()[3]++;
    CheckpointFiles.write(changed.resolve("model.safetensors"), tensors);
    CheckpointFiles.writeIndex(changed, "model.safetensors", tensors);
    // Nobody says that it was swept: other searches may come to this.
    assertVerified(source, changed);
    Files.copy(output.resolve("sparkfp4-manifest.json"), changed.resolve("sparkfp4-manifest.json"));

    assertThat(verify(source, changed).out()).contains("Tensor " + SCALES, "differs from the source quantized again");
  }

  @Test
  void sweepLessensTheErrorOfEveryLayer() throws Exception {
    Path source = CheckpointFiles.golden("qwen3_moe_bf16");
    List<Double> rounded = errors(source, quantize(source, "--scale-search", "rtn"));
    List<Double> better = errors(source, quantize(source, "--scale-search", "four-over-six"));
    List<Double> swept = errors(source, quantize(source));
    assertThat(swept).hasSize(24);
    for (int layer = 0; layer < swept.size(); layer++) {
      assertThat(better.get(layer)).isLessThan(rounded.get(layer));
      assertThat(swept.get(layer)).isLessThan(better.get(layer));
    }
  }

  private static List<Double> errors(Path source, Path output) {
    SparkSubmitResult result = new InProcess().run(
        "verify", "--source", source.toString(), "--quantized", output.toString(), "--layers");
    return result.out().lines().filter(line -> line.matches("0\\.\\d+ +model.*"))
        .map(line -> Double.valueOf(line.split(" ")[0])).toList();
  }

  @Test
  void weightedWantsStatistics() {
    SparkSubmitResult result = new InProcess().run("quantize", "--input",
        CheckpointFiles.golden("qwen3_moe_bf16").toString(), "--output", folder.resolve("none").toString(),
        "--scale-search", "weighted");
    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).contains("Invalid --scale-search: weighted takes what calibrate found out; give its folder by ");
    result = new InProcess().run("quantize", "--input", CheckpointFiles.golden("qwen3_moe_bf16").toString(),
        "--output", folder.resolve("none").toString(), "--weighting", "hessian");
    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).contains("Invalid --weighting: hessian, but --scale-search is sweep, not weighted");
    result = new InProcess().run("quantize", "--input", CheckpointFiles.golden("qwen3_moe_bf16").toString(),
        "--output", folder.resolve("none").toString(), "--scale-search", "best");
    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err())
        .contains("Invalid scale search: best; known are rtn, four-over-six, sweep, weighted");
  }

  private Path quantize(Path source, String... options) throws IOException {
    Path output = Files.createTempDirectory(folder, "output").resolve("nvfp4");
    List<String> arguments =
        new ArrayList<>(List.of("quantize", "--input", source.toString(), "--output", output.toString()));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = new InProcess().run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }
}
