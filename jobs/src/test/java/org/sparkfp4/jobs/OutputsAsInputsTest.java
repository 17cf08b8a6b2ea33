package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.calibration.Activations;
import org.sparkfp4.safetensors.DType;

/** What inspect and verify make of what the other commands wrote, and what a dry run says of it before. */
class OutputsAsInputsTest {
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");

  @TempDir
  private static Path folder;

  @BeforeAll
  static void make() throws IOException {
    for (String layout : List.of("modelopt", "compressed-tensors", "cublas-128x4")) {
      succeed("quantize", "--input", SOURCE.toString(), "--output", folder.resolve(layout).toString(), "--layout", layout,
          "--scale-search", "rtn");
    }

    Path activations = Files.createDirectories(folder.resolve("recorded"));
    CheckpointFiles.write(activations.resolve("a.safetensors"),
        Map.of("m.input", Activations.random(8, 32, 1).bf16()));
    succeed("quantize-activations", "--input", activations.toString(), "--output", folder.resolve("activations").toString());
    Path keys = new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, 128).write(folder.resolve("keys/keys.safetensors"));
    succeed("quantize-keys", "--input", keys.toString(), "--output", folder.resolve("cache").toString());
  }

  @ParameterizedTest
  @CsvSource({"modelopt, W4A4, modelopt", "compressed-tensors, W4A4, compressed-tensors",
      "cublas-128x4, W4A4, cublas-128x4", "activations, activations, linear"})
  void inspectNamesWhatIsThere(String output, String what, String layout) throws IOException {
    String told = succeed("inspect", folder.resolve(output).toString());
    assertThat(told)
        .contains("format        NVFP4 (" + what + "), layout " + layout + "\n")
        .contains("manifest      sparkfp4-manifest.json, by Spark FP4 " + Version.current() + "\n")
        .contains("made from     file:", "scale search rtn\n", "state         finished; verify --manifest ")
        .doesNotContain("problem", "becomes");
    assertThat(told.contains("experts       as cuBLASLt, CUTLASS and FlashInfer's CUTLASS experts hold them"))
        .isEqualTo(output.equals("cublas-128x4"));
    JsonNode json = new ObjectMapper().readTree(succeed("inspect", "--json", folder.resolve(output).toString()));
    assertThat(json.at("/nvfp4/layout").asText()).isEqualTo(layout);
    assertThat(json.path("state").asText()).startsWith("finished");
    assertThat(json.path("plan").isNull()).isTrue();
  }

  /** As other producers write them, and copies without the manifest. */
  @ParameterizedTest
  @CsvSource({"modelopt", "compressed-tensors", "cublas-128x4"})
  void inspectFindsTheLayoutByNamesAndMetadata(String layout) throws IOException {
    Path copy = copy(layout, "without-" + layout);
    Files.delete(copy.resolve("sparkfp4-manifest.json"));
    Files.delete(copy.resolve("sparkfp4-manifest.json.sha256"));

    String told = succeed("inspect", copy.toString());
    assertThat(told).contains("format        NVFP4 (W4A4), layout " + layout + "\n", "manifest      none: ")
        .doesNotContain("state  ", "problem");
    SparkSubmitResult verified = verify(copy);
    assertThat(verified.status()).as(verified.out() + verified.err()).isEqualTo(layout.equals("cublas-128x4") ? 1 : 0);
  }

  @Test
  void inspectTellsWhatIsNotFinished() throws IOException {
    Path begun = copy("modelopt", "begun");
    Files.createDirectory(begun.resolve("_sparkfp4"));
    assertThat(succeed("inspect", begun.toString())).contains("state         not finished: a run was begun there");

    Path unindexed = copy("modelopt", "unindexed");
    Files.delete(unindexed.resolve("model.safetensors.index.json"));
    assertThat(succeed("inspect", unindexed.toString()))
        .contains("state         not finished: model.safetensors.index.json is missing");

    Path nothing = Files.createDirectories(folder.resolve("nothing"));
    Files.createDirectory(nothing.resolve("_sparkfp4"));
    SparkSubmitResult early = new InProcess().run("inspect", nothing.toString());
    assertThat(early.status()).isEqualTo(1);
    assertThat(early.err()).startsWith("Cannot inspect file:" + nothing + " yet: a run was begun there").hasLineCount(1);
  }

  @ParameterizedTest
  @CsvSource({"cublas-128x4, layout cublas-128x4; verify what convert", "activations, it has activations",
      "cache, it is a cache of keys; give it to verify-keys"})
  void verifyRefusesWhatHasNoLayersOfItsOwn(String output, String message) {
    SparkSubmitResult result = verify(folder.resolve(output));
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.out()).isEmpty();
    assertThat(result.err()).startsWith("Cannot hold ").contains(message).hasLineCount(1);
  }

  /** Of a layout that is made in two steps too, a dry run shows what the second will write. */
  @ParameterizedTest
  @CsvSource({"modelopt", "cublas-128x4"})
  void dryRunShowsTheTensorsThatThereWillBe(String layout) throws IOException {
    String planned = succeed("quantize", "--input", SOURCE.toString(), "--output", folder.resolve("dry").toString(),
        "--layout", layout, "--scale-search", "rtn", "--dry-run");

    assertThat(folder.resolve("dry")).doesNotExist();
    var tensors = CheckpointFiles.read(folder.resolve(layout));
    long bytes = tensors.values().stream().map(StoredTensor::data).mapToLong(data -> data.length).sum();
    assertThat(planned).contains(String.format(" in, %d out\n", tensors.size()))
        .contains(String.format(" in, %.2f kB out (", bytes / 1e3));
    for (String file : folder.resolve(layout).toFile().list((dir, name) -> name.endsWith(".safetensors"))) {
      assertThat(planned).contains("           " + file + "  ");
    }

    JsonNode report = new ObjectMapper().readTree(folder.resolve(layout).resolve("sparkfp4-report.json").toFile());
    assertThat(report.at("/summary/bytesOut").asLong()).isEqualTo(bytes);
    assertThat(planned.contains("room       ")).isEqualTo(layout.equals("cublas-128x4"));
  }

  private static Path copy(String output, String name) throws IOException {
    Path copy = Files.createDirectories(folder.resolve(name));
    for (Path file : Arrays.stream(folder.resolve(output).toFile().listFiles()).map(File::toPath).toList()) {
      Files.copy(file, copy.resolve(file.getFileName()));
    }

    return copy;
  }

  private static SparkSubmitResult verify(Path output) {
    return new InProcess().run("verify", "--source", SOURCE.toString(), "--quantized", output.toString());
  }

  private static String succeed(String... arguments) {
    SparkSubmitResult result = new InProcess().run(arguments);
    assertThat(result.status()).as(result.out() + result.err()).isZero();
    return result.out();
  }
}
