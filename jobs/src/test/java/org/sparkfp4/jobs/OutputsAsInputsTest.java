package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
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

    // of what an interrupted run left, with one shard or several, a guess would tell what is not so
    Files.delete(begun.resolve("model.safetensors.index.json"));
    requireNotYet(begun);
    Path converted = copy("cublas-128x4", "begun conversion");
    Files.createDirectory(converted.resolve("_sparkfp4"));
    for (String other : List.of("model.safetensors.index.json", "sparkfp4-manifest.json", "config.json")) {
      Files.delete(converted.resolve(other));
    }

    requireNotYet(converted);
    Path shard = begun.resolve("model-00001-of-00001.safetensors");
    Files.copy(shard, begun.resolve("model-00002-of-00002.safetensors"));
    requireNotYet(begun);

    Path unindexed = copy("modelopt", "unindexed");
    Files.delete(unindexed.resolve("model.safetensors.index.json"));
    assertThat(succeed("inspect", unindexed.toString()))
        .contains("state         not finished: model.safetensors.index.json is missing");

    Path nothing = Files.createDirectories(folder.resolve("nothing"));
    Files.createDirectory(nothing.resolve("_sparkfp4"));
    requireNotYet(nothing);
  }

  private static void requireNotYet(Path begun) {
    for (String json : new String[] {"--json", "--tensors"}) {
      SparkSubmitResult early = new InProcess().run("inspect", json, begun.toString());
      assertThat(early.status()).isEqualTo(1);
      assertThat(early.out()).isEmpty();
      assertThat(early.err()).isEqualTo("Cannot inspect file:" + begun
          + " yet: a run was begun there and has not finished; the same command finishes it\n");
    }
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

  @Test
  void whatIsNoInputIsNamed() throws IOException {
    Path plain = Files.writeString(folder.resolve("plain.txt"), "a text that is no header of any file\n");
    Path bare = Files.createDirectory(folder.resolve("bare"));
    for (String file : SOURCE.toFile().list((dir, name) -> name.startsWith("model"))) {
      Files.copy(SOURCE.resolve(file), bare.resolve(file));
    }

    String output = folder.resolve("never").toString();
    for (String[] command : new String[][] {{"inspect"}, {"verify", "--quantized", output, "--source"},
        {"quantize", "--output", output, "--input"}, {"convert", "--to", "modelopt", "--output", output, "--input"},
        {"quantize-activations", "--output", output, "--input"}, {"calibrate", "--output", output, "--input"}}) {
      assertThat(refusal(command, plain)).as(command[0])
          .isEqualTo("Invalid checkpoint file:" + plain + ": it is no .safetensors file and no folder\n");
    }

    assertThat(refusal(new String[] {"quantize-keys", "--output", output, "--input"}, plain))
        .isEqualTo("Invalid input: " + plain + " is no .safetensors file and no folder\n");
    for (Path one : List.of(bare, bare.resolve("model-00001-of-00003.safetensors"))) {
      assertThat(refusal(new String[] {"quantize", "--output", output, "--input"}, one))
          .startsWith("Cannot plan for file:" + bare + " without config.json: it names the model family");
    }

    assertThat(refusal(new String[] {"calibrate", "--output", output, "--input", folder.resolve("recorded").toString(),
        "--model"}, bare)).startsWith("Cannot plan for file:" + bare + " without config.json: ");
    assertThat(folder.resolve("never")).doesNotExist();
  }

  private static String refusal(String[] command, Path last) {
    String[] arguments = Arrays.copyOf(command, command.length + 1);
    arguments[command.length] = last.toString();
    SparkSubmitResult result = new InProcess().run(arguments);
    assertThat(result.status()).as(result.out()).isEqualTo(1);
    assertThat(result.err()).hasLineCount(1);
    return result.err();
  }

  /** A dry run says what the run would: it is asked before hours of work are begun. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "quantize --layout modelopt --scale-search sweep | modelopt | a checkpoint of another plan (--scale-search rtn",
    "quantize --layout compressed-tensors | cublas-128x4 | a checkpoint of another plan (--layout cublas",
    "quantize --layout scales-8x4 --scale-search rtn | cublas-128x4 | a checkpoint of another plan (layout cublas",
    "quantize --layout modelopt | keys | no run of Spark FP4 (it has keys.safetensors)",
    "convert --to scales-8x4 --input modelopt | cublas-128x4 | a checkpoint of another plan (layout cublas",
    "convert --to scales-8x4 --input modelopt | keys | no run of Spark FP4 (it has keys.safetensors)",
    "quantize-keys --input keys/keys.safetensors --page-tokens 32 | cache | a cache of other options (page-tokens 64"
  })
  void dryRunRefusesWhatTheRunWould(String command, String output, String held) throws IOException {
    Path there = folder.resolve(output);
    List<String> arguments = new ArrayList<>();
    for (String argument : command.split(" ")) {
      Path known = folder.resolve(argument);
      arguments.add(arguments.contains("--input") && Files.exists(known) ? known.toString() : argument);
    }

    if (!arguments.contains("--input")) {
      arguments.addAll(List.of("--input", SOURCE.toString()));
    }

    arguments.addAll(List.of("--output", there.toString()));
    Map<String, String> before = Outputs.identities(there, "");
    SparkSubmitResult real = new InProcess().run(arguments.toArray(String[]::new));
    arguments.add("--dry-run");
    SparkSubmitResult dry = new InProcess().run(arguments.toArray(String[]::new));

    assertThat(dry).isEqualTo(real);
    assertThat(dry.status()).isEqualTo(1);
    assertThat(dry.out()).isEmpty();
    assertThat(dry.err()).startsWith("Cannot write to file:" + there + ": it ").contains(held).hasLineCount(1);
    assertThat(Outputs.identities(there, "")).isEqualTo(before);
    arguments.add("--overwrite");
    if (!output.equals("keys")) {
      assertThat(succeed(arguments.toArray(String[]::new))).isNotEmpty();
    }
  }

  /** The plan is the result of a dry run alone; what it warns of is told always. */
  @ParameterizedTest
  @CsvSource({"modelopt", "cublas-128x4"})
  void quietRunPrintsNoPlan(String layout) {
    String[] run = {"quantize", "--input", SOURCE.toString(), "--output", folder.resolve("quiet " + layout).toString(),
        "--layout", layout, "--quiet", "--dry-run"};
    String planned = succeed(run);
    assertThat(planned).startsWith("model      qwen3_moe to NVFP4");
    List<String> warnings = planned.lines().filter(line -> line.startsWith("warning    ")).toList();
    assertThat(warnings).isNotEmpty();

    String told = succeed(Arrays.copyOf(run, run.length - 1));
    assertThat(told).contains("relative error").doesNotContain("model      ", "tensors    ", "shards     ", "room  ");
    assertThat(told.lines()).startsWith(warnings.toArray(String[]::new));

    String converted = succeed("convert", "--input", folder.resolve("modelopt").toString(), "--to", "scales-8x4",
        "--output", folder.resolve("quiet again " + layout).toString(), "--quiet");
    assertThat(converted).startsWith("file:").hasLineCount(1);
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
