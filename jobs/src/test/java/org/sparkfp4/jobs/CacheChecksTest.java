package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.TestSpark;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.keys.CacheExport;
import org.sparkfp4.keys.CachedKeys;
import org.sparkfp4.keys.CachedLayer;
import org.sparkfp4.safetensors.DType;

/** Caches, tables and tokens that are not what they should be: each is told, none passes for good. */
class CacheChecksTest {
  private static final int TOKENS = 150;
  private static final DataType FLOATS = DataTypes.createArrayType(DataTypes.FloatType);

  @TempDir
  private static Path folder;

  private static KeyFiles keys;
  private static Path first;
  private static Path cache;

  @BeforeAll
  static void make() throws IOException {
    keys = new KeyFiles()
        .gaussian("l0.index_k", DType.F32, 0, TOKENS, 32)
        .gaussian("l0.k_norm.weight", DType.F32, 1, 32)
        .gaussian("l0.k_norm.bias", DType.F32, 0, 32);
    first = keys.write(folder.resolve("first/keys.safetensors"));
    cache = folder.resolve("cache");
    assertDone(run("quantize-keys", "--input", first, "--output", cache, "--eps", "1e-6"));
  }

  private static SparkSubmitResult run(Object... arguments) {
    return new InProcess().runAll(arguments);
  }

  private static void assertDone(SparkSubmitResult result) {
    assertThat(result.status()).as(result.out() + result.err()).isZero();
  }

  private static void assertRefused(SparkSubmitResult result, String... parts) {
    assertThat(result.status()).as(result.out() + result.err()).isEqualTo(1);
    assertThat(result.err()).contains(parts).hasLineCount(1);
  }

  @Test
  void aLayerThatTheCacheHasNotIsADifference() throws IOException {
    Path second = new KeyFiles().gaussian("l1.index_k", DType.BF16, 0, 70, 64)
        .write(folder.resolve("second/keys.safetensors"));
    SparkSubmitResult result = run("verify-keys", "--source", first, "--source", second, "--cache", cache,
        "--queries", 2);
    assertThat(result.status()).as(result.out() + result.err()).isEqualTo(3);
    assertThat(result.out()).contains("l0: 150 keys, 0 differ", "l1: not in the cache, the source has it\n")
        .endsWith("different\n");
    // one file of a cache has one layer
    assertDone(run("verify-keys", "--source", first, "--source", second, "--cache",
        cache.resolve("keys-00001-of-00001.safetensors"), "--queries", 2));
  }

  @Test
  void keysThatTheSourceHasNotAreADifference() throws IOException {
    List<Row> rows = new ArrayList<>();
    float[] values = ElementType.F32.floats(keys.bytes("l0.index_k"));
    for (int token = 0; token < 50; token++) {
      rows.add(RowFactory.create("l0", (long) token, boxed(Arrays.copyOfRange(values, token * 32, token * 32 + 32))));
    }

    rows.add(RowFactory.create("l1", 0L, boxed(new float[32])));
    SparkSubmitResult result = run("verify-keys", "--source", first, "--table", table("few", FLOATS, rows), "--cache",
        cache, "--queries", 2);
    assertThat(result.status()).as(result.out() + result.err()).isEqualTo(3);
    assertThat(result.out()).contains("l0: 50 keys, 0 differ", "it has 150 keys, the source 50\n",
        "l1: not in the cache, the source has it\n").endsWith("different\n");
  }

  private static List<Float> boxed(float[] values) {
    List<Float> boxed = new ArrayList<>();
    for (float value : values) {
      boxed.add(value);
    }

    return boxed;
  }

  private static String table(String name, DataType keyType, List<Row> rows) {
    StructType schema = new StructType().add("layer", DataTypes.StringType).add("slot", DataTypes.LongType)
        .add("key", keyType);
    return table(name, schema, rows);
  }

  private static String table(String name, StructType schema, List<Row> rows) {
    Path path = folder.resolve("table-" + name);
    TestSpark.session().createDataFrame(rows, schema).write().parquet(path.toString());
    return "parquet:" + path;
  }

  @ParameterizedTest
  @CsvSource({"num_tokens, 150, abc", "num_tokens, 150, -15", "num_tokens, 150, 999", "ln_eps, 1.0E-6, zz0E-6",
      "ln_eps, 1.0E-6, -1.E-6", "scale_rule, ceil, teil", "hadamard, false, maybe"})
  void forgedMetadataIsRefused(String entry, String from, String to) throws IOException {
    Path forged = forged(entry, from, to);
    assertRefused(run("verify-keys", "--source", first, "--cache", forged, "--queries", 2),
        "Invalid cache file file:" + forged, ": its " + entry + " is \"" + to + "\", must be ");
    if (entry.equals("num_tokens")) {
      Path ids = new KeyFiles().slots("token_ids", new long[64]).write(folder.resolve("ids/zeros.safetensors"));
      assertRefused(run("export-keys", "--cache", forged, "--tokens", ids, "--output", folder.resolve("forged-out"),
          "--format", "vllm"), "Invalid cache file file:" + forged, ": its num_tokens is \"" + to + "\"");
    }
  }

  private static Path forged(String entry, String from, String to) throws IOException {
    Path copy = Files.createTempDirectory(folder, "forged");
    for (String file : cache.toFile().list()) {
      String text = Files.readString(cache.resolve(file), StandardCharsets.ISO_8859_1);
      Files.writeString(copy.resolve(file),
          text.replace("\"" + entry + "\":\"" + from + "\"", "\"" + entry + "\":\"" + to + "\""),
          StandardCharsets.ISO_8859_1);
    }

    return copy;
  }

  @ParameterizedTest
  @ValueSource(longs = {1L << 40, 1L << 31, -1})
  void idsThatNoTokenHasAreRefused(long id) throws IOException {
    long[] ids = new long[64];
    ids[7] = id;
    Path file = new KeyFiles().slots("token_ids", ids).write(folder.resolve("ids/odd.safetensors"));
    for (String format : List.of("sglang", "vllm")) {
      assertRefused(run("export-keys", "--cache", cache, "--tokens", file, "--output", folder.resolve("odd-ids"),
          "--format", format), "Invalid tokens: the id of token 7 is " + id + ", must be from 0 to 2147483647");
    }

    assertThat(folder.resolve("odd-ids")).doesNotExist();
  }

  @Test
  void anExportIntoTheCacheIsRefused() throws IOException {
    Path ids = new KeyFiles().slots("token_ids", new long[64]).write(folder.resolve("ids/some.safetensors"));
    for (Path output : List.of(cache, cache.resolve("export"))) {
      assertRefused(run("export-keys", "--cache", cache, "--tokens", ids, "--output", output, "--format", "sglang"),
          "Cannot write to file:" + output + ": the source file:" + cache + " is the same folder or one inside the other");
    }

    assertThat(cache.resolve("export")).doesNotExist();
  }

  @Test
  void anExportThatFailsLeavesNoPartOfAFile() throws IOException {
    Configuration conf = new Configuration();
    CachedLayer whole = CachedKeys.layers(conf, cache.toString()).get(0);
    Map<String, String> metadata = new HashMap<>(whole.metadata());
    metadata.put("num_tokens", "6400");
    CachedLayer longer = new CachedLayer(whole.name(), whole.file(), "", whole.dataStart(), whole.offset(), 100,
        whole.page(), metadata);
    Path output = folder.resolve("cut");
    CacheExport export =
        new CacheExport(conf, List.of(longer), new long[6400], new org.apache.hadoop.fs.Path(output.toUri()));
    assertThatThrownBy(() -> export.vllm(".k_cache")).isInstanceOf(EOFException.class);
    assertThatThrownBy(() -> export.sglang("model")).isInstanceOf(EOFException.class);
    try (var files = Files.walk(output)) {
      // SGLang's first pages are whole
      assertThat(files.filter(Files::isRegularFile).filter(file -> !file.toString().contains("/_sparkfp4-export-")))
          .isNotEmpty().allSatisfy(
          file -> assertThat(file).hasSize(whole.page().bytes()).hasExtension("bin"));
    }
  }

  @Test
  void aNullAmongAKeysValuesIsRefused() throws IOException {
    List<Float> holed = boxed(new float[32]);
    holed.set(9, null);
    String table = table("holed", FLOATS,
        List.of(RowFactory.create("l0", 0L, boxed(new float[32])), RowFactory.create("l0", 5L, holed)));
    String message = "Invalid table " + table + ": layer l0 has a key with a null among its values, that of slot 5";
    assertRefused(run("verify-keys", "--source", first, "--table", table, "--cache", cache), message);
    assertRefused(run("quantize-keys", "--table", table, "--output", folder.resolve("none")), message);
    assertThat(folder.resolve("none")).doesNotExist();
  }

  @ParameterizedTest
  @ValueSource(strings = {"nosuch:/x", "delta:/x", "parquet:/nosuch", "parquet:EMPTY"})
  void aTableThatCannotBeOpenedIsToldInALine(String name) throws IOException {
    String table = name.replace("EMPTY", Files.createDirectories(folder.resolve("empty")).toString());
    String message = "Cannot open table " + table + ": ";
    assertRefused(run("verify-keys", "--table", table, "--cache", cache), message, "check its format and its path");
    assertRefused(run("quantize-keys", "--table", table, "--output", folder.resolve("none")), message);
  }

  @Test
  void aTypeOfKeysThatAreArraysIsRefused() {
    String table = table("typed", FLOATS, List.of(RowFactory.create("l0", 0L, boxed(new float[32]))));
    assertRefused(run("quantize-keys", "--table", table, "--key-type", "BF16", "--output", folder.resolve("none")),
        "Invalid --key-type: BF16, the keys of table " + table + " are ARRAY<FLOAT>; leave it out");
  }

  @Test
  void layersThatAreListsAreRefused() {
    StructType schema = new StructType().add("layer", DataTypes.createArrayType(DataTypes.StringType))
        .add("slot", DataTypes.LongType).add("key", FLOATS);
    String table = table("lists", schema, List.of(RowFactory.create(List.of("l0"), 0L, boxed(new float[32]))));
    assertRefused(run("quantize-keys", "--table", table, "--output", folder.resolve("none")),
        "Invalid table " + table + ": its column layer is ARRAY<STRING>, must be STRING or an integer");
  }

  @Test
  void aHostThatIsNotThereIsToldInALine() {
    assertRefused(run("quantize-keys", "--input", "hdfs://nohost.invalid:1/x", "--output", folder.resolve("none")),
        "Cannot use the file system of hdfs://nohost.invalid:1/x: there is no host nohost.invalid; check its name");
  }
}
