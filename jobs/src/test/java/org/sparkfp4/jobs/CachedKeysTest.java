package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.keys.CachedKeys;
import org.sparkfp4.keys.CachedLayer;
import org.sparkfp4.keys.InvalidKeysException;
import org.sparkfp4.safetensors.DType;

/** What reads a cache: inspect, the decoder, verify-keys, export-keys. */
class CachedKeysTest {
  private static final int TOKENS = 20_000;

  @TempDir
  private static Path folder;

  private static KeyFiles keys;
  private static Path input;
  private static Path cache;

  @BeforeAll
  static void make() throws IOException {
    keys = new KeyFiles()
        .gaussian("layers.0.index_k", DType.BF16, 0.1, TOKENS, 128)
        .gaussian("layers.0.k_norm.weight", DType.F32, 1, 128)
        .gaussian("layers.0.k_norm.bias", DType.F32, 0, 128)
        .gaussian("layers.1.index_k", DType.F32, 0, 200, 128);
    input = keys.write(folder.resolve("in/keys.safetensors"));
    cache = folder.resolve("cache");
    SparkSubmitResult made = new InProcess().run("quantize-keys", "--input", input.toString(), "--output",
        cache.toString(), "--eps", "1e-6", "--model", "org/model");
    assertThat(made.status()).as(made.err()).isZero();
  }

  @Test
  void inspectShowsLayers() throws IOException {
    SparkSubmitResult result = new InProcess().run("inspect", cache.toString());
    assertThat(result.status()).isZero();
    assertThat(result.out()).contains("cache of      indexer keys, MXFP4\n", "model         org/model\n",
        "scale rule    ceil\n", "norm          layernorm, eps 1.0E-6\n")
        .containsPattern("(?m)^layers\\.0 +20000 +313 +64 +128 +1\\.36 MB$")
        .containsPattern("(?m)^layers\\.1 +200 +4 +64 +128 +17\\.41 kB$");
    JsonNode json = new ObjectMapper().readTree(new InProcess().run("inspect", "--json",
        cache.resolve("keys-00002-of-00002.safetensors").toString()).out());
    assertThat(json.at("/layers/0/metadata/num_tokens").asText()).isEqualTo("200");
  }

  @Test
  void keysAreDecoded() throws IOException {
    Configuration conf = new Configuration();
    CachedLayer layer = CachedKeys.layers(conf, cache.toString()).get(1);
    float[] source = ElementType.F32.floats(keys.bytes("layers.1.index_k"));
    float[] key = new float[128];
    double squares = 0;
    double errors = 0;
    try (CachedKeys reader = new CachedKeys(layer, conf)) {
      for (int token = 0; token < 200; token++) {
        reader.decode(token, key);
        for (int d = 0; d < 128; d++) {
          squares += source[token * 128 + d] * source[token * 128 + d];
          errors += Math.pow(source[token * 128 + d] - key[d], 2);
        }
      }

      reader.decode(201, key);
      assertThat(key).containsOnly(0f);
      assertThatThrownBy(() -> reader.page(4)).isInstanceOf(InvalidKeysException.class)
          .hasMessage("Invalid page of layers.1: 4, it has 4 pages");
    }

    assertThat(Math.sqrt(errors / squares)).isBetween(0.1, 0.13);
    assertThatThrownBy(() -> CachedKeys.layers(conf, folder.toString())).isInstanceOf(InvalidKeysException.class)
        .hasMessageContaining("has no keys.safetensors.index.json");
  }

  @Test
  void logitsOfTwentyThousandKeysStayClose() {
    SparkSubmitResult result =
        new InProcess().run("verify-keys", "--source", input.toString(), "--cache", cache.toString());
    assertThat(result.status()).as(result.out() + result.err()).isZero();
    Matcher line = Pattern.compile("layers\\.0: 20,000 keys, 0 differ, relative error (\\S+), logits differ by (\\S+), "
        + "top 2048 overlap (\\S+)\n").matcher(result.out());
    assertThat(line.find()).as(result.out()).isTrue();
    assertThat(Double.parseDouble(line.group(1))).isBetween(0.1, 0.13);
    assertThat(Double.parseDouble(line.group(2))).isBetween(0.001, 0.01);
    assertThat(Double.parseDouble(line.group(3))).isBetween(0.8, 0.95);
    assertThat(result.out()).contains("layers.1: 200 keys, 0 differ").endsWith("good\n");
  }

  @Test
  void aTopOfFewKeysIsOfHalfOfThem() {
    // all 200 are the top 2048 of any logits: that would tell 1.000 of every cache
    SparkSubmitResult result = verify(cache, "--max-keys", "200", "--queries", "4");
    Matcher line = Pattern.compile("layers\\.1: 200 keys, .* top 100 overlap (\\S+)\n").matcher(result.out());
    assertThat(line.find()).as(result.out()).isTrue();
    assertThat(Double.parseDouble(line.group(1))).isBetween(0.8, 0.99);
    assertThat(verify(cache, "--max-keys", "200", "--queries", "4", "--top-k", "20").out())
        .contains(" top 20 overlap ").doesNotContain("top 100");
    assertThat(verify(cache, "--max-keys", "1").out()).containsPattern(
        "(?m)^layers\\.1: 1 keys, 0 differ, .*, too few keys to choose the top of$");
  }

  @Test
  void aChangedByteIsADifference() throws IOException {
    Path copy = Files.createDirectories(folder.resolve("changed"));
    for (String file : cache.toFile().list()) {
      Files.copy(cache.resolve(file), copy.resolve(file));
    }

    CachedLayer layer = CachedKeys.layers(new Configuration(), copy.toString()).get(1);
    try (RandomAccessFile file =
        new RandomAccessFile(copy.resolve("keys-00002-of-00002.safetensors").toFile(), "rw")) {
      file.seek(layer.offset() + 64 * 7 + 5);
      int code = file.read();
      file.seek(layer.offset() + 64 * 7 + 5);
      file.write(code ^ 1);
    }

    SparkSubmitResult result = new InProcess().run(
        "verify-keys", "--source", input.toString(), "--cache", copy.toString(), "--max-keys", "300", "--queries", "2");
    assertThat(result.status()).isEqualTo(3);
    assertThat(result.out()).contains("layers.1: 200 keys, 1 differ").endsWith("different\n");
  }

  @Test
  void aChangedByteAnywhereIsDamage() throws IOException {
    Path copy = Files.createDirectories(folder.resolve("damaged"));
    for (String file : cache.toFile().list()) {
      Files.copy(cache.resolve(file), copy.resolve(file));
    }

    CachedLayer layer = CachedKeys.layers(new Configuration(), copy.toString()).get(1);
    // of the padding behind 200 tokens, a key past --max-keys, the metadata
    long[] places = {layer.offset() + layer.bytes() - 1, layer.offset() + 2 * layer.page().bytes(), 60};
    Path changed = copy.resolve("keys-00002-of-00002.safetensors");
    byte[] whole = Files.readAllBytes(changed);
    for (long place : places) {
      byte[] bytes = whole.clone();
      bytes[(int) place] ^= 1;
      Files.write(changed, bytes);
      SparkSubmitResult result = verify(copy, "--max-keys", "100", "--queries", "2");
      assertThat(result.status()).as("byte %d", place).isNotZero();
      if (place >= layer.dataStart()) {
        assertThat(result.status()).isEqualTo(3);
        assertThat(result.out()).contains("layers.1: 100 keys, 0 differ", "  damaged: file:" + changed + ": its tensors are "
            + "not those of its checksum, its bytes are not those that the index has the SHA-256 of")
            .endsWith("different\n");
      }
    }

    // a file alone has its own checksum
    SparkSubmitResult alone = verify(changed, "--max-keys", "100", "--queries", "2");
    assertThat(alone.status()).isNotZero();
    Files.write(changed, whole);
    assertThat(verify(changed, "--max-keys", "100", "--queries", "2").out()).endsWith("good\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"NaN", "-0.5", "Infinity"})
  void aLimitMustBeANumber(String limit) {
    SparkSubmitResult result = verify(cache, "--max-difference", limit);
    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).contains("Invalid --max-difference: " + limit + " (must be a finite number, 0 at least)");
  }

  private static SparkSubmitResult verify(Path cache, String... options) {
    List<String> arguments =
        new ArrayList<>(List.of("verify-keys", "--source", input.toString(), "--cache", cache.toString()));
    arguments.addAll(List.of(options));
    return new InProcess().run(arguments.toArray(String[]::new));
  }

  @Test
  void anExportReplacesNothing() throws IOException {
    Path output = folder.resolve("again");
    assertThat(export(tokens(129), output, "vllm").status()).isZero();
    assertThat(export(tokens(130), output, "sglang").status()).isZero();
    for (String format : List.of("vllm", "sglang")) {
      SparkSubmitResult result = export(tokens(131), output, format);
      assertThat(result.status()).isEqualTo(1);
      assertThat(result.err()).startsWith("Cannot write to " + output)
          .containsPattern(": it is there already, of layer layers\\.0 to layers\\.1 \\(2 layers\\) "
              + "\\(sparkfp4-export-[0-9a-f]{16}\\.json\\), and this export is of layer layers\\.0 to layers\\.1 "
              + "\\(2 layers\\): requests that begin with the same tokens share it; remove it, or choose another folder")
          .hasLineCount(1);
    }

    // of one layer of that cache, as another cache of the same tokens would be: nothing of it is left behind
    Map<String, String> before = Outputs.identities(output, "");
    SparkSubmitResult other = new InProcess().run("export-keys", "--cache",
        cache.resolve("keys-00002-of-00002.safetensors").toString(), "--tokens",
        folder.resolve("tokens-131.safetensors").toString(), "--output", output.toString(), "--format", "sglang");
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("of layer layers.0 to layers.1 (2 layers) (sparkfp4-export-")
        .contains("and this export is of layer layers.1: ");
    assertThat(Outputs.identities(output, "")).isEqualTo(before);
  }

  @Test
  void anExportNeedsTokensInTheirOwnSlots() throws IOException {
    Path mapped = new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, 128).slots("l.slot_mapping", 0, 2, 1, 3)
        .write(folder.resolve("mapped/keys.safetensors"));
    Path made = folder.resolve("mapped-cache");
    SparkSubmitResult cached =
        new InProcess().run("quantize-keys", "--input", mapped.toString(), "--output", made.toString());
    assertThat(cached.status()).as(cached.err()).isZero();
    Path ids = new KeyFiles().slots("token_ids", tokens(4)).write(folder.resolve("four.safetensors"));
    SparkSubmitResult result = new InProcess().run("export-keys", "--cache", made.toString(), "--tokens",
        ids.toString(), "--output", folder.resolve("mapped-out").toString(), "--format", "vllm");
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith("Invalid cache: the tokens of l in file:" + made)
        .contains("are not in the slots of their numbers").hasLineCount(1);
    assertThat(export(tokens(201), folder.resolve("many"), "vllm").err())
        .startsWith("Invalid tokens: 201, layers.1 in file:").contains("has keys of 200");
  }

  @Test
  void sglangGetsAFileForEachFullPage() throws Exception {
    long[] ids = tokens(150);
    Path output = folder.resolve("sglang");
    SparkSubmitResult result = export(ids, output, "sglang", "--model", "org/model");
    assertThat(result.status()).as(result.err()).isZero();
    ByteBuffer page = ByteBuffer.allocate(256).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < 64; i++) {
      page.putInt((int) ids[i]);
    }

    byte[] first = MessageDigest.getInstance("SHA-256").digest(page.array());
    ByteBuffer second = ByteBuffer.allocate(32 + 256).order(ByteOrder.LITTLE_ENDIAN).put(first);
    for (int i = 64; i < 128; i++) {
      second.putInt((int) ids[i]);
    }

    String firstName = HexFormat.of().formatHex(first) + ".indexer_org-model.bin";
    String secondName = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(second.array()))
        + ".indexer_org-model.bin";
    assertThat(output.toFile().list((dir, name) -> name.endsWith(".bin")))
        .containsExactlyInAnyOrder(firstName, secondName);
    byte[] written = Files.readAllBytes(output.resolve(secondName));
    assertThat(written).hasSize(2 * 4352);
    assertThat(Arrays.copyOf(written, 4352)).isEqualTo(image(0, 1));
    assertThat(Arrays.copyOfRange(written, 4352, 2 * 4352)).isEqualTo(image(1, 1));
  }

  @Test
  void vllmGetsAFileForEachLayer() throws Exception {
    long[] ids = tokens(129);
    Path output = folder.resolve("vllm");
    SparkSubmitResult result = export(ids, output, "vllm");
    assertThat(result.status()).as(result.err()).isZero();
    ByteBuffer prefix = ByteBuffer.allocate(128 * 8).order(ByteOrder.LITTLE_ENDIAN);
    prefix.asLongBuffer().put(ids, 0, 128);
    String hash = HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(prefix.array()));
    Path file = output.resolve(hash).resolve("layers.1.k_cache.safetensors");
    Path alone = Files.createDirectories(folder.resolve("alone")).resolve("one.safetensors");
    Files.copy(file, alone);
    StoredTensor tensor = CheckpointFiles.read(alone).get("kv_cache");
    assertThat(tensor.shape()).isEqualTo(List.of(128L, 1L, 68L));
    assertThat(Arrays.copyOf(tensor.data(), 4352)).isEqualTo(image(1, 0));
    assertThat(export(tokens(500), output, "vllm").err())
        .startsWith("Invalid cache: layers.1 has 4 pages, 500 tokens fill 7");
  }

  /** Killed between two files: those that are there stay, the rest follows, and the record is the last. */
  @ParameterizedTest
  @ValueSource(strings = {"sglang", "vllm"})
  void anExportThatEndedEarlyIsFinishedByTheSameCommand(String format) throws IOException {
    long[] ids = tokens(190);
    Path output = folder.resolve("ended-" + format);
    assertThat(export(ids, output, format).status()).isZero();
    Map<String, String> whole = Outputs.identities(output, "");
    String record = whole.keySet().stream().filter(name -> name.matches("sparkfp4-export-[0-9a-f]{16}\\.json"))
        .findFirst().orElseThrow();
    List<Path> files;
    try (var walk = Files.walk(output)) {
      files = walk.filter(file -> file.toString().matches(".*\\.(bin|safetensors)")).sorted().toList();
    }

    assertThat(files).hasSize(2);
    JsonNode listed = new ObjectMapper().readTree(output.resolve(record).toFile()).path("files");
    files.forEach(file -> assertThat(listed.path(output.relativize(file).toString()).asLong())
        .as("%s in %s", file, listed).isEqualTo(file.toFile().length()));

    // as a killed run leaves it: the mark, one file of two, no record
    byte[] second = Files.readAllBytes(files.get(1));
    Files.delete(files.get(1));
    Files.delete(output.resolve(record));
    Path mark = Files.createFile(output.resolve("_" + record.substring(0, record.length() - ".json".length())));
    long first = Files.getLastModifiedTime(files.get(0)).toMillis();
    assertThat(export(tokens(191), output, format).err()).startsWith("Cannot write to ").contains("it is there already");
    SparkSubmitResult finished = export(ids, output, format);
    assertThat(finished.status()).as(finished.err()).isZero();
    assertThat(Files.readAllBytes(files.get(1))).isEqualTo(second);
    assertThat(Files.getLastModifiedTime(files.get(0)).toMillis()).isEqualTo(first);
    assertThat(output.resolve(record)).exists();
    assertThat(mark).doesNotExist();

    Map<String, String> done = Outputs.identities(output, "");
    assertThat(export(ids, output, format).status()).isZero();
    assertThat(Outputs.identities(output, "")).isEqualTo(done);
  }

  /** The same command mends what was cut or removed, by the record's lengths; all of it where the record is damaged. */
  @ParameterizedTest
  @ValueSource(strings = {"a file is cut", "a file is missing", "null", "{", "[]", "{\"files\": {\"a:b\": 1}}"})
  void aFinishedExportThatWasDamagedIsMended(String damage) throws IOException {
    long[] ids = tokens(190);
    Path output = folder.resolve("damaged").resolve(Integer.toHexString(damage.hashCode()));
    assertThat(export(ids, output, "sglang").status()).isZero();
    List<Path> files = Stream.of(output.toFile().listFiles((parent, name) -> name.endsWith(".bin")))
        .map(File::toPath).sorted().toList();
    Path record = output.toFile().listFiles((parent, name) -> name.endsWith(".json"))[0].toPath();
    byte[] second = Files.readAllBytes(files.get(1));
    byte[] whole = Files.readAllBytes(record);
    switch (damage) {
      case "a file is cut" -> Files.write(files.get(1), Arrays.copyOf(second, 100));
      case "a file is missing" -> Files.delete(files.get(1));
      default -> {
        Files.write(files.get(1), Arrays.copyOf(second, 100));
        Files.writeString(record, damage);
      }
    }

    SparkSubmitResult mended = export(ids, output, "sglang");

    assertThat(mended.status()).as(mended.err()).isZero();
    assertThat(files.get(1)).hasBinaryContent(second);
    assertThat(record).hasBinaryContent(whole);
    assertThat(output.toFile().list((parent, name) -> name.startsWith("_"))).isEmpty();
  }

  private static byte[] image(int layer, int page) throws IOException {
    Configuration conf = new Configuration();
    try (CachedKeys reader = new CachedKeys(CachedKeys.layers(conf, cache.toString()).get(layer), conf)) {
      return reader.page(page).array().clone();
    }
  }

  private static long[] tokens(int count) {
    long[] ids = new long[count];
    Arrays.setAll(ids, i -> 1000 + 7L * i);
    return ids;
  }

  private static SparkSubmitResult export(long[] ids, Path output, String format, String... options)
      throws IOException {
    Path file = new KeyFiles().slots("token_ids", ids).write(folder.resolve("tokens-" + ids.length + ".safetensors"));
    List<String> arguments = new ArrayList<>(List.of("export-keys", "--cache", cache.toString(), "--tokens",
        file.toString(), "--output", output.toString(), "--format", format));
    arguments.addAll(List.of(options));
    return new InProcess().run(arguments.toArray(String[]::new));
  }
}
