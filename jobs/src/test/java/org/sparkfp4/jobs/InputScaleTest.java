package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
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

/** Scales of activations by {@code --statistics}, on a model of 2 layers and 4 experts. */
class InputScaleTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String LAYER = "model.layers.0.mlp";
  private static final String MODEL = CheckpointFiles.golden("qwen3_moe_bf16").toString();

  @TempDir
  private Path folder;

  private Path statistics;

  /** Layer 0: expert 3 sees no token. Layer 1: nothing is known. */
  @BeforeEach
  void calibrate() throws IOException {
    Path activations = Files.createDirectories(folder.resolve("activations"));
    int[][] routing = new int[64][1];
    for (int token = 0; token < 64; token++) {
      routing[token][0] = token % 3;
    }

    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    tensors.put(LAYER + ".input", Activations.random(64, 128, 1).with(4, 9, 50f).with(5, 9, -70f).bf16());
    tensors.put(LAYER + ".routing", Activations.routing(routing));
    for (int expert = 0; expert < 3; expert++) {
      tensors.put(LAYER + ".experts." + expert + ".down_proj.input",
          Activations.random(21, 64, 2 + expert).with(1, 1, 10f + expert).bf16());
    }

    CheckpointFiles.write(activations.resolve("a.safetensors"), tensors);
    statistics = folder.resolve("statistics");
    SparkSubmitResult result = new InProcess().run(
        "calibrate", "--input", activations.toString(), "--output", statistics.toString(), "--model", MODEL);
    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains("dead       model.layers.0.mlp.experts: 3\n");
  }

  @ParameterizedTest
  @CsvSource({"modelopt, input_scale", "compressed-tensors, input_global_scale"})
  void isThatOfTheLargestActivation(String layout, String name) throws IOException {
    SparkSubmitResult result = quantize("out", "--layout", layout, "--statistics", statistics.toString());
    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out())
        .contains("inputs     scales by amax: 6 measured, 2 of other experts, 8 1.0\n")
        .contains("warning    input scales of 2 units are the largest of the other experts, as no token, or none but "
            + "zeros, came there: model.layers.0.mlp.experts: 3\n")
        .contains("warning    input scales of 8 units are 1.0, as there are no statistics of their inputs, or none but "
            + "of zeros: model.layers.1.mlp.experts: 0, 1, 2, 3\n");

    Map<String, StoredTensor> output = CheckpointFiles.read(folder.resolve("out"));
    // token 4 went to expert 1, token 5 to expert 2
    requireScale(output, layout, LAYER + ".experts.1.gate_proj." + name, 50f);
    requireScale(output, layout, LAYER + ".experts.1.up_proj." + name, 50f);
    requireScale(output, layout, LAYER + ".experts.2.up_proj." + name, 70f);
    requireScale(output, layout, LAYER + ".experts.3.gate_proj." + name, 70f);
    requireScale(output, layout, LAYER + ".experts.0.down_proj." + name, 10f);
    requireScale(output, layout, LAYER + ".experts.3.down_proj." + name, 12f);
    assertThat(scalar(output, "model.layers.1.mlp.experts.0.gate_proj." + name)).isEqualTo(1f);

    SparkSubmitResult verified = new InProcess().run(
        "verify", "--source", MODEL, "--quantized", folder.resolve("out").toString());
    assertThat(verified.status()).as(verified.out() + verified.err()).isZero();
  }

  /** Tokens that reached an expert as zeros say nothing of its inputs, as one that no token reached. */
  @ParameterizedTest
  @ValueSource(strings = {"modelopt", "compressed-tensors"})
  void activationsThatAreAllZeroGiveNoScaleOfZero(String layout) throws IOException {
    Path activations = Files.createDirectories(folder.resolve("zeros"));
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    tensors.put(LAYER + ".experts.0.down_proj.input", Activations.zeros(21, 64).bf16());
    tensors.put(LAYER + ".experts.1.down_proj.input", Activations.random(21, 64, 5).with(1, 1, 10f).bf16());
    tensors.put("model.layers.1.mlp.experts.0.down_proj.input", Activations.zeros(21, 64).bf16());
    CheckpointFiles.write(activations.resolve("a.safetensors"), tensors);
    Path sums = folder.resolve("of zeros");
    SparkSubmitResult calibrated = new InProcess().run(
        "calibrate", "--input", activations.toString(), "--output", sums.toString(), "--model", MODEL);
    assertThat(calibrated.status()).as(calibrated.err()).isZero();

    SparkSubmitResult result = quantize("out", "--layout", layout, "--statistics", sums.toString());

    assertThat(result.status()).as(result.err()).isZero();
    Map<String, StoredTensor> output = CheckpointFiles.read(folder.resolve("out"));
    String name = layout.equals("modelopt") ? ".input_scale" : ".input_global_scale";
    requireScale(output, layout, LAYER + ".experts.0.down_proj" + name, 10f);
    assertThat(scalar(output, "model.layers.1.mlp.experts.0.down_proj" + name)).isEqualTo(1f);
  }

  private static void requireScale(Map<String, StoredTensor> output, String layout, String name, float amax) {
    assertThat(scalar(output, name)).isEqualTo(layout.equals("modelopt") ? amax / 2688 : 1 / amax * 2688);
  }

  /**
   * 20,000 blocks of amax 1.5, of which some are 50: one in ten thousand may be above the percentile, which is the end of
   * the bin that begins at 1.5 and is an eighth of 1 wide.
   */
  @ParameterizedTest
  @CsvSource({"1, 1.625", "3, 50"})
  void thePercentileIsWhatOneBlockInTenThousandExceeds(int large, float percentile) throws IOException {
    Path activations = Files.createDirectories(folder.resolve("blocks"));
    Activations x = Activations.zeros(5_000, 64);
    for (int token = 0; token < 5_000; token++) {
      for (int block = 0; block < 64; block += 16) {
        x.with(token, block + token % 16, token < large && block == 16 ? 50f : 1.5f);
      }
    }

    String module = LAYER + ".experts.1.down_proj";
    CheckpointFiles.write(activations.resolve("a.safetensors"), Map.of(module + ".input", x.bf16()));
    Path sums = folder.resolve("sums of blocks");
    SparkSubmitResult calibrated = new InProcess().run(
        "calibrate", "--input", activations.toString(), "--output", sums.toString(), "--model", MODEL);
    assertThat(calibrated.status()).as(calibrated.err()).isZero();

    for (String rule : List.of("amax", "percentile")) {
      SparkSubmitResult result = quantize(rule, "--statistics", sums.toString(), "--input-scale", rule);
      assertThat(result.status()).as(result.err()).isZero();
      requireScale(CheckpointFiles.read(folder.resolve(rule)), "modelopt", module + ".input_scale",
          rule.equals("amax") ? 50f : percentile);
    }
  }

  @Test
  void headroomMakesAnotherScaleOfTheSameStatistics() throws IOException {
    quantize("headroom", "--statistics", statistics.toString(), "--input-scale", "headroom");
    String scale = LAYER + ".experts.1.gate_proj.input_scale";
    float headroom = 2688 * scalar(CheckpointFiles.read(folder.resolve("headroom")), scale);
    double least = Double.POSITIVE_INFINITY;
    Activations x = Activations.random(64, 128, 1);
    for (int token = 1; token < 64; token += 3) {
      for (int block = 0; block < 128; block += 16) {
        double amax = 0;
        for (int i = block; i < block + 16; i++) {
          amax = Math.max(amax, Math.abs(x.values()[token][i]));
        }

        least = Math.min(least, amax);
      }
    }

    // the first percentile of 168 blocks is the second smallest at most; a bin is an eighth wide
    assertThat(headroom / 16384).isCloseTo((float) least, within((float) least * 0.3f));
  }

  @Test
  void thereIsNoneOfActivationsInHighPrecision() throws IOException {
    SparkSubmitResult result = quantize("out", "--weight-only", "--statistics", statistics.toString());
    assertThat(result.status()).as(result.err()).isZero();
    assertThat(CheckpointFiles.read(folder.resolve("out")).keySet()).noneMatch(name -> name.endsWith("input_scale"));
  }

  @Test
  void otherStatisticsAndRulesAreOtherPlans() throws IOException {
    assertThat(quantize("out").status()).isZero();
    SparkSubmitResult with = quantize("out", "--statistics", statistics.toString());
    assertThat(with.status()).isEqualTo(1);
    assertThat(with.err()).contains("of another plan");
    assertThat(quantize("out", "--statistics", statistics.toString(), "--overwrite").status()).isZero();
    assertThat(quantize("out", "--statistics", statistics.toString()).status()).isZero();
    assertThat(quantize("out", "--statistics", statistics.toString(), "--input-scale", "headroom").err())
        .contains("of another plan");
  }

  @Test
  void statisticsThatCannotBeAreNamed() throws IOException {
    Path index = statistics.resolve("statistics.json");
    String good = Files.readString(index);
    requireRefused(change(good, 0, "module", "model.layers.9.mlp.experts.0.gate_proj"),
        "module model.layers.9.mlp.experts.0.gate_proj (", ") is no linear layer of");
    requireRefused(
        change(good, 0, "cols", 64), "has K 64, but the weight of " + LAYER + ".experts.0.gate_proj has 128");
    requireRefused(change(good, 0, "amax", Double.NaN),
        "Invalid statistics of module " + LAYER + ".experts.0.gate_proj: amax NaN, must be finite and not negative");
    requireRefused(change(good, 0, "amax", -1), "amax -1.0, must be finite and not negative");
    requireRefused(change(good, 0, "tokens", -3), "tokens -3, must be finite and not negative");
    requireRefused(good.replace("\"format\" : 1", "\"format\" : 7"), "format 7, must be 1");
    requireRefused("{", "Invalid statistics ");

    Files.delete(statistics.resolve("statistics-00001-of-00001.safetensors"));
    requireRefused(good, "file statistics-00001-of-00001.safetensors of ");
    Files.delete(index);
    assertThat(quantize("out", "--statistics", statistics.toString()).err())
        .contains("it has no statistics.json; give a folder that calibrate has finished");
    assertThat(folder.resolve("out")).doesNotExist();
  }

  private static String change(String index, int module, String field, Object value) throws IOException {
    ObjectNode changed = (ObjectNode) JSON.readTree(index);
    ((ObjectNode) changed.get("modules").get(module)).set(field, JSON.valueToTree(value));
    return JSON.writeValueAsString(changed);
  }

  private void requireRefused(String index, String... message) throws IOException {
    Files.writeString(statistics.resolve("statistics.json"), index);
    SparkSubmitResult result = quantize("out", "--statistics", statistics.toString());
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).contains(List.of(message));
  }

  @Test
  void optionsThatMakeNoSenseAreUsageErrors() {
    SparkSubmitResult alone = quantize("out", "--input-scale", "amax");
    assertThat(alone.status()).isEqualTo(2);
    assertThat(alone.err()).contains("Invalid --input-scale: there is nothing to make scales of without --statistics");
    SparkSubmitResult unknown = quantize("out", "--statistics", statistics.toString(), "--input-scale", "mean");
    assertThat(unknown.status()).isEqualTo(2);
    assertThat(unknown.err()).contains("Invalid input scale: mean; known are amax, percentile, headroom");
  }

  private SparkSubmitResult quantize(String output, String... options) {
    String[] all = new String[options.length + 5];
    System.arraycopy(
        new String[] {"quantize", "--input", MODEL, "--output", folder.resolve(output).toString()}, 0, all, 0, 5);
    System.arraycopy(options, 0, all, 5, options.length);
    return new InProcess().run(all);
  }

  private static float scalar(Map<String, StoredTensor> output, String name) {
    return ByteBuffer.wrap(output.get(name).data()).order(ByteOrder.LITTLE_ENDIAN).getFloat();
  }
}
