package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.zip.CRC32C;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;

/** What a manifest says, and that no changed byte escapes it. */
class ManifestTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String MANIFEST = "sparkfp4-manifest.json";

  @TempDir
  private static Path folder;

  private static Path source;
  private static Path output;

  private Path changed;

  @BeforeAll
  static void quantize() throws IOException {
    source = copy(CheckpointFiles.golden("qwen3_moe_bf16"), "source");
    Files.writeString(source.resolve("tokenizer.json"), "{\"version\": \"1.0\"}");
    output = folder.resolve("output");
    run(
        0, "quantize", "--input", source.toString(), "--output", output.toString(), "--max-shard-size", "100kB",
        "--scale-search", "rtn");
  }

  /** Each test changes one byte at most. */
  @AfterEach
  void mend() throws IOException {
    if (changed != null) {
      flip(changed);
    }
  }

  @Test
  void saysWhereTheCheckpointComesFromAndWhatItIs() throws Exception {
    JsonNode manifest = manifest();

    assertThat(manifest.path("producer").asText()).isEqualTo("Spark FP4 " + Version.current());
    assertThat(manifest.path("sources")).hasSize(3);
    for (JsonNode file : manifest.path("sources")) {
      byte[] bytes = Files.readAllBytes(source.resolve(file.path("name").asText()));
      assertThat(file.path("length").asLong()).isEqualTo(bytes.length);
      CRC32C crc = new CRC32C();
      crc.update(bytes);
      assertThat(manifest.path("checksums").path(file.path("name").asText()).asText())
          .isEqualTo(String.format("%08x", crc.getValue()));
    }

    List<String> names = new ArrayList<>(List.of(MANIFEST, MANIFEST + ".sha256", "sparkfp4-report.json"));
    assertThat(manifest.path("shards").size()).isGreaterThan(2);
    for (JsonNode shard : manifest.path("shards")) {
      assertThat(shard.path("sha256").asText()).isEqualTo(sha256(output.resolve(shard.path("file").asText())));
      names.add(shard.path("file").asText());
    }

    for (JsonNode file : manifest.path("digests")) {
      Path path = output.resolve(file.path("name").asText());
      assertThat(file.path("sha256").asText()).isEqualTo(sha256(path));
      assertThat(file.path("length").asLong()).isEqualTo(Files.size(path));
      names.add(file.path("name").asText());
    }

    assertThat(output.toFile().list()).containsExactlyInAnyOrderElementsOf(names);
    assertThat(output.resolve(MANIFEST + ".sha256")).hasContent(sha256(output.resolve(MANIFEST)) + "  " + MANIFEST);
    assertThat(manifest.path("events").path("zeroLayers").asLong()).isZero();
    assertThat(manifest.path("events").path("largestScales").asLong()).isGreaterThanOrEqualTo(16);
    assertThat(manifest.path("events").path("keptModules").asLong()).isEqualTo(12);
  }

  /** Units that are read by rows, scales that lie in other files, weights that become BF16, experts in one tensor. */
  @ParameterizedTest
  @CsvSource({
    "qwen3_moe_bf16, experts, 4k, mmap", "qwen3_moe_bf16, linears, 256m, pread", "deepseek_v3_fp8, experts, 4k, pread",
    "deepseek_v3_fp8, linears, 256m, mmap", "kimi_k25_int4, experts, 4k, mmap", "kimi_k3_mxfp4, mlp, 256m, mmap"
  })
  void checksumsAreOfWhatWasReadForTheShards(String model, String targets, String unitBytes, String read)
      throws Exception {
    Path input = CheckpointFiles.golden(model);
    Path made = folder.resolve(String.join("-", model, targets, unitBytes));
    SparkSubmitResult result = new InProcess().conf("spark.fp4.unitBytes", unitBytes).conf("spark.fp4.read", read)
        .run("quantize", "--input", input.toString(), "--output", made.toString(), "--targets", targets);
    assertThat(result.status()).as(result.err()).isZero();

    long headers = 0;
    JsonNode manifest = JSON.readTree(made.resolve(MANIFEST).toFile());
    assertThat(manifest.path("checksums").size()).isEqualTo(manifest.path("sources").size()).isPositive();
    for (JsonNode file : manifest.path("sources")) {
      byte[] bytes = Files.readAllBytes(input.resolve(file.path("name").asText()));
      CRC32C crc = new CRC32C();
      crc.update(bytes);
      assertThat(manifest.path("checksums").path(file.path("name").asText()).asText())
          .isEqualTo(String.format("%08x", crc.getValue()));
      headers += 8 + ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).getLong();
    }

    long again = -1;
    for (JsonNode stage : JSON.readTree(made.resolve("sparkfp4-report.json").toFile()).path("stages")) {
      again = stage.path("name").asText().contains("checksums") ? stage.path("bytesIn").asLong() : again;
    }

    long dropped = 64; // shapes of packed weights
    assertThat(again).as("bytes read for checksums alone").isBetween(headers, headers + dropped * 64);
  }

  @Test
  void shardThatChangedBeforeTheEndIsNotPublished() throws Exception {
    Path resumed = copy(output, "resumed");
    Files.delete(resumed.resolve("model.safetensors.index.json"));
    Path shard = resumed.resolve(manifest().path("shards").path(1).path("file").asText());
    byte[] bytes = Files.readAllBytes(shard);
    int place = new String(bytes, StandardCharsets.ISO_8859_1).indexOf("_proj");
    bytes[place + 1] = 'q';
    Files.write(shard, bytes);
    String[] command = {
      "quantize", "--input", source.toString(), "--output", resumed.toString(), "--max-shard-size", "100kB",
      "--scale-search", "rtn"
    };

    assertThat(run(1, command).err())
        .startsWith("Cannot publish file:" + resumed + ": " + shard.getFileName()
            + " is not as it was written: it lacks TensorInfo[name=model.layers.")
        .endsWith("; remove that file and start the same command again\n");
    assertThat(resumed.resolve("model.safetensors.index.json")).doesNotExist();

    Files.delete(shard);
    run(0, command);
    Outputs.assertSame(output, resumed);
  }

  @Test
  void everyTensorOfTheSourceHasAScheme() throws Exception {
    TreeSet<String> expanded = new TreeSet<>();
    for (JsonNode scheme : manifest().path("tensors")) {
      List<String> names = List.of(scheme.path("tensors").asText());
      for (JsonNode ranges : scheme.path("indices")) {
        List<String> longer = new ArrayList<>();
        for (String range : ranges.asText().split(",")) {
          String[] ends = range.split("-");
          for (int i = Integer.parseInt(ends[0]); i <= Integer.parseInt(ends[ends.length - 1]); i++) {
            int index = i;
            names.forEach(name -> longer.add(name.replaceFirst("\\*", Integer.toString(index))));
          }
        }

        names = longer;
      }

      assertThat(names).hasSize(scheme.path("count").asInt());
      assertThat(names).allMatch(expanded::add);
      assertThat(scheme.path("to").asText())
          .isEqualTo(scheme.path("tensors").asText().contains(".experts.") ? "nvfp4" : "copied");
    }

    assertThat(expanded).isEqualTo(new TreeSet<>(
        Checkpoint.open(new Configuration(), source.toString()).tensors().stream().map(LocatedTensor::name).toList()));
  }

  @ParameterizedTest
  @ValueSource(strings = {
    "model-00001-of-", "config.json", "hf_quant_config.json", "tokenizer.json", "README.md",
    "model.safetensors.index.json", MANIFEST, MANIFEST + ".sha256"
  })
  void oneByteThatChangedInAnyFileIsFound(String name) throws Exception {
    try (var files = Files.list(output)) {
      changed = files.filter(file -> file.getFileName().toString().startsWith(name)
          && !(name.equals(MANIFEST) && file.toString().endsWith(".sha256"))).findFirst().orElseThrow();
    }

    flip(changed);
    SparkSubmitResult result = new InProcess().run("verify", "--manifest", "--quantized", output.toString());

    assertThat(result.status()).as(result.out() + result.err()).isEqualTo(VerifyCommand.DIFFERENCE);
    assertThat(result.out())
        .containsPattern("File " + name.replace(".sha256", "") + "\\S* has the SHA-256 [0-9a-f]{64}, ");
  }

  @Test
  void wholeVerificationLooksAtFilesToo() throws Exception {
    changed = output.resolve("tokenizer.json");
    flip(changed);

    SparkSubmitResult result = new InProcess()
        .run("verify", "--source", source.toString(), "--quantized", output.toString());

    assertThat(result.status()).isEqualTo(VerifyCommand.DIFFERENCE);
    assertThat(result.out())
        .contains("1 difference found:")
        .contains("File tokenizer.json has the SHA-256 ");
  }

  @Test
  void sourceThatChangedSince() throws Exception {
    SparkSubmitResult before = run(
        0, "verify", "--manifest", "--source", source.toString(), "--quantized", output.toString());
    assertThat(before.out()).endsWith("compared them with the manifest\nNo difference found\n");

    changed = source.resolve("model-00002-of-00003.safetensors");
    flip(changed);
    SparkSubmitResult result = run(
        3, "verify", "--manifest", "--source", source.toString(), "--quantized", output.toString());

    assertThat(result.out()).contains("1 difference found:")
        .containsPattern("Source file model-00002-of-00003.safetensors has the CRC-32C [0-9a-f]{8}, when it was read ");
  }

  @Test
  void shardsThatAreMissingOrTooMany() throws Exception {
    Path other = copy(output, "other");
    Path shard = other.resolve(manifest().path("shards").path(0).path("file").asText());
    Files.move(shard, other.resolve("stray.safetensors"));

    SparkSubmitResult result = run(3, "verify", "--manifest", "--quantized", other.toString());

    assertThat(result.out()).contains("2 differences found:")
        .contains("Unexpected file stray.safetensors: it is not in the manifest")
        .contains("Missing file " + shard.getFileName() + " in file:" + other + ", which is in the manifest");
  }

  /** A shard may have one name in both folders; and what is not there was not read. */
  @Test
  void sourceThatIsAnotherFolder() throws Exception {
    Path wrong = Files.createDirectory(folder.resolve("wrong"));
    Files.write(wrong.resolve("model-00001-of-00003.safetensors"), new byte[5]);
    String read =
        run(0, "verify", "--manifest", "--quantized", output.toString()).out().lines().findFirst().orElseThrow();

    SparkSubmitResult result = run(
        3, "verify", "--manifest", "--quantized", output.toString(), "--source", wrong.toString());

    assertThat(result.out()).startsWith(read + "\n").contains(" differences found:",
        "Source file model-00001-of-00003.safetensors has 5 bytes, in the manifest ",
        "Missing source file model-00002-of-00003.safetensors in file:" + wrong + ", which is in the manifest");
    assertThat(read).startsWith(String.format("Read %,d bytes in ", readBytes()));
  }

  /** Bytes of the files that the manifest has a digest of. */
  private static long readBytes() throws IOException {
    long bytes = 0;
    for (JsonNode file : manifest().path("digests")) {
      bytes += Files.size(output.resolve(file.path("name").asText()));
    }

    for (JsonNode shard : manifest().path("shards")) {
      bytes += Files.size(output.resolve(shard.path("file").asText()));
    }

    return bytes;
  }

  @Test
  void manifestOfAnEarlierVersionIsReadAsFarAsItGoes() throws Exception {
    Path old = copy(output, "old");
    Files.delete(old.resolve(MANIFEST + ".sha256"));
    ObjectNode manifest = (ObjectNode) JSON.readTree(old.resolve(MANIFEST).toFile());
    manifest.remove(List.of("checksums", "digests", "tensors", "events"));
    JsonNode files = JSON.valueToTree(List.of("README.md", "config.json", "hf_quant_config.json", "tokenizer.json"));
    manifest.set("files", files);
    manifest.path("shards").forEach(shard -> {
      ((ObjectNode) shard).remove("source");
      shard.path("layers").forEach(
          layer -> ((ObjectNode) layer).remove(List.of("gptqRows", "subnormalScales", "largestScales")));
    });
    JSON.writeValue(old.resolve(MANIFEST).toFile(), manifest);
    Map<String, String> before = Outputs.identities(old, "");

    run(0, "verify", "--source", source.toString(), "--quantized", old.toString());
    run(0, "verify", "--manifest", "--source", source.toString(), "--quantized", old.toString());
    run(
        0, "quantize", "--input", source.toString(), "--output", old.toString(), "--max-shard-size", "100kB",
        "--scale-search", "rtn");

    assertThat(Outputs.identities(old, "")).as("a finished checkpoint is left alone").isEqualTo(before);
  }

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "--sample 101% | 2 | Invalid --sample: 101%, must be a number of layers, such as 20, or a share of them, such as",
    "--sample few | 2 | Invalid --sample: few, must be",
    "--sample -1 | 2 | Invalid --sample: -1, must be",
    "'' | 2 | Missing required option: '--source=DIR' (or --manifest, to look at digests only)"
  })
  void wrongOptions(String options, int status, String message) {
    List<String> arguments = new ArrayList<>(List.of("verify", "--quantized", output.toString()));
    if (options.isEmpty()) {
      assertThat(run(status, arguments.toArray(String[]::new)).err()).contains(message);
    } else {
      arguments.addAll(List.of("--source", source.toString()));
      arguments.addAll(List.of(options.split(" ")));
      assertThat(run(status, arguments.toArray(String[]::new)).err()).contains(message);
    }
  }

  @Test
  void checkpointWithoutManifest() {
    SparkSubmitResult result = run(1, "verify", "--manifest", "--quantized", source.toString());

    assertThat(result.err()).isEqualTo("Cannot verify " + source + " by its manifest: it has no " + MANIFEST
        + "; leave --manifest out, and give --source\n");
  }

  private static JsonNode manifest() throws IOException {
    return JSON.readTree(output.resolve(MANIFEST).toFile());
  }

  private static SparkSubmitResult run(int status, String... arguments) {
    SparkSubmitResult result = new InProcess().run(arguments);
    assertThat(result.status()).as(result.out() + result.err()).isEqualTo(status);
    return result;
  }

  /** Changes the last but one byte of a file, or back. */
  private static void flip(Path file) throws IOException {
    var modified = Files.getLastModifiedTime(file);
    try (RandomAccessFile bytes = new RandomAccessFile(file.toFile(), "rw")) {
      long place = bytes.length() - 2;
      bytes.seek(place);
      int old = bytes.read();
      bytes.seek(place);
      bytes.write(old ^ 1);
    }

    Files.setLastModifiedTime(file, modified);
  }

  private static Path copy(Path from, String to) throws IOException {
    Path copy = Files.createDirectory(folder.resolve(to));
    for (String file : from.toFile().list()) {
      Files.copy(from.resolve(file), copy.resolve(file));
    }

    return copy;
  }

  private static String sha256(Path file) throws Exception {
    return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
  }
}
