package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.KeyCache;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.LayerNorm;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.SafetensorsHeader;

class QuantizeKeysTest {
  private static final int DIM = 128;
  private static final float EPS = 1e-5f;

  @TempDir
  private Path folder;

  private final Random random = new Random(3);

  private SparkSubmitResult run(Object... arguments) {
    return new InProcess().runAll(Stream.concat(Stream.of("quantize-keys"), Arrays.stream(arguments)).toArray());
  }

  private void succeed(Object... arguments) {
    SparkSubmitResult result = run(arguments);
    assertThat(result.status()).as(result.err()).isZero();
  }

  private static byte[] pages(KeyForm form, ElementType type, byte[] keys, long[] slots, int pages, int pageTokens) {
    KeyPage page = new KeyPage(pageTokens, form.dim());
    byte[] cache = new byte[pages * page.bytes()];
    KeyCache.insert(form, type, ByteBuffer.wrap(keys), keys.length / type.bytes() / form.dim(), LongBuffer.wrap(slots),
        ByteBuffer.wrap(cache), pages, page, page.bytes());
    return cache;
  }

  /** The tensors of one file of a cache, which is put where no other is. */
  private Map<String, StoredTensor> cache(Path output, String file) throws IOException {
    return CheckpointFiles.read(
        Files.copy(output.resolve(file), Files.createTempDirectory(folder, "one").resolve(file)));
  }

  private long[] shuffledSlots(int count, int capacity) {
    List<Long> all = new ArrayList<>();
    for (long slot = 0; slot < capacity; slot++) {
      all.add(slot);
    }

    Collections.shuffle(all, random);
    return all.stream().limit(count).mapToLong(Long::longValue).toArray();
  }

  @ParameterizedTest
  @CsvSource({"BF16, 64, auto", "F16, 32, java", "F32, 64, auto"})
  void layersOfSeveralFilesAreTheReferences(DType dtype, int pageTokens, String tier) throws Exception {
    long[] slots = shuffledSlots(500, 700);
    slots[7] = -1;
    KeyFiles first = new KeyFiles()
        .gaussian("model.layers.2.index_k", dtype, 0.2, 520, DIM)
        .gaussian("model.layers.2.k_norm.weight", DType.BF16, 1, DIM)
        .slots("model.layers.2.slot_mapping", slots);
    KeyFiles second = new KeyFiles()
        .gaussian("model.layers.2.k_norm.bias", DType.F32, 0, DIM)
        .gaussian("model.layers.10.index_k", dtype, 0, 100, 64);
    first.write(folder.resolve("in/a.safetensors"));
    second.write(folder.resolve("in/b.safetensors"));
    Path output = folder.resolve("out");

    SparkSubmitResult result = new InProcess().conf("spark.fp4.cpu.tier", tier).run("quantize-keys", "--input",
        folder.resolve("in").toString(), "--output", output.toString(), "--eps", "1e-5", "--page-tokens",
        Integer.toString(pageTokens), "--model", "org/model", "--scale-rule", "best-of-two");

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains(": 599 keys of 2 layers in ");
    assertThat(output.toFile().list()).containsExactlyInAnyOrder("keys-00001-of-00002.safetensors",
        "keys-00002-of-00002.safetensors", "keys.safetensors.index.json");
    ElementType type = ElementType.of(dtype.name());
    LayerNorm norm = new LayerNorm(ElementType.BF16.floats(first.bytes("model.layers.2.k_norm.weight")),
        ElementType.F32.floats(second.bytes("model.layers.2.k_norm.bias")), EPS);
    int largest = (int) Arrays.stream(slots).max().getAsLong();
    StoredTensor keys = cache(output, "keys-00001-of-00002.safetensors").get("model.layers.2.index_k");
    int pages = largest / pageTokens + 1;
    assertThat(keys.shape()).containsExactly((long) pages, (long) pageTokens, 68L);
    assertThat(keys.data()).isEqualTo(pages(new KeyForm(DIM, norm, false, false, ScaleRule.BEST_OF_TWO), type,
        first.bytes("model.layers.2.index_k"), slots, pages, pageTokens));
    long[] inOrder = new long[100];
    Arrays.setAll(inOrder, i -> i);
    StoredTensor plain = cache(output, "keys-00002-of-00002.safetensors").get("model.layers.10.index_k");
    assertThat(plain.data()).isEqualTo(pages(new KeyForm(64, null, false, false, ScaleRule.BEST_OF_TWO), type,
        second.bytes("model.layers.10.index_k"), inOrder, (100 + pageTokens - 1) / pageTokens, pageTokens));
    checkHeader(output.resolve("keys-00001-of-00002.safetensors"), keys, pageTokens);
  }

  private static void checkHeader(Path file, StoredTensor keys, int pageTokens) throws Exception {
    try (InputStream in = Files.newInputStream(file)) {
      SafetensorsHeader header = SafetensorsHeader.parse(file.toString(), in, Files.size(file));
      assertThat(header.dataStart() % 4096).isZero();
      String checksum = HexFormat.of().formatHex(
          MessageDigest.getInstance("SHA-256").digest(keys.data()));
      assertThat(header.metadata()).containsEntry("format", "sparkfp4-index-k")
          .containsEntry("model", "org/model").containsEntry("layer_name", "model.layers.2")
          .containsEntry("head_dim", "128").containsEntry("block", "32")
          .containsEntry("page_tokens", Integer.toString(pageTokens)).containsEntry("layout", "segregated")
          .containsEntry("scale", "ue8m0").containsEntry("scale_rule", "best-of-two")
          .containsEntry("round", "rne-keep-neg-zero").containsEntry("nibble", "even-low")
          .containsEntry("norm", "layernorm").containsEntry("ln_eps", "1.0E-5")
          .containsEntry("ln_round_bf16", "false").containsEntry("hadamard", "false")
          .containsEntry("num_tokens", "499").containsEntry("slot_order", "mapped")
          .containsEntry("checksum", "sha256:" + checksum);
    }
  }

  @Test
  void rangesOfALayerFollowEachOther() throws Exception {
    // three ranges and a bit, few tokens, so that most pages are empty
    int pages = 25_000;
    long[] slots = shuffledSlots(3000, pages * 64);
    KeyFiles keys = new KeyFiles().gaussian("layer.index_k", DType.BF16, 0, 3000, DIM)
        .slots("layer.index_slot_mapping", slots);
    Path input = keys.write(folder.resolve("in/keys.safetensors"));
    Path output = folder.resolve("out");

    succeed("--input", input, "--output", output, "--pages", pages, "--hadamard", "--round-norm-to-bf16");

    assertThat(cache(output, "keys-00001-of-00001.safetensors").get("layer.index_k").data())
        .isEqualTo(pages(new KeyForm(DIM, null, true, true, ScaleRule.CEIL), ElementType.BF16,
            keys.bytes("layer.index_k"), slots, pages, 64));
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aTableGivesTheSame(boolean isBinary) throws Exception {
    int pages = 17_000;
    KeyFiles files = new KeyFiles();
    List<Row> rows = new ArrayList<>();
    StructType schema = new StructType().add("layer", DataTypes.StringType).add("slot", DataTypes.LongType)
        .add("key", isBinary ? DataTypes.BinaryType : DataTypes.createArrayType(DataTypes.FloatType))
        .add("other", DataTypes.StringType);
    for (String layer : List.of("b", "a.9", "a.10")) {
      long[] slots = shuffledSlots(700, layer.equals("b") ? pages * 64 : 2000);
      slots[20] = -5;
      files.gaussian(layer + ".index_k", DType.F32, 0.1, 700, DIM).slots(layer + ".slot_mapping", slots);
      ByteBuffer keys = ByteBuffer.wrap(files.bytes(layer + ".index_k")).order(ByteOrder.LITTLE_ENDIAN);
      for (int i = 0; i < 700; i++) {
        byte[] key = new byte[DIM * 4];
        keys.get(i * key.length, key);
        rows.add(RowFactory.create(layer, slots[i], isBinary ? key : boxed(key), "x"));
      }
    }

    for (String layer : List.of("b", "a.9", "a.10")) {
      files.gaussian(layer + ".k_norm.weight", DType.F32, 1, DIM).gaussian(layer + ".k_norm.bias", DType.F32, 0, DIM);
    }

    Path input = files.write(folder.resolve("in/keys.safetensors"));
    TestSpark.session().createDataFrame(rows, schema).repartition(3).write()
        .parquet(folder.resolve("table").toString());
    succeed("--input", input, "--output", folder.resolve("files"), "--eps", "1e-6");
    List<Object> arguments = new ArrayList<>(List.of("--input", input, "--table", "parquet:" + folder.resolve("table"),
        "--output", folder.resolve("rows"), "--eps", "1e-6"));
    if (isBinary) {
      arguments.addAll(List.of("--key-type", "F32"));
    }

    succeed(arguments.toArray());

    for (String file : List.of("keys-00001-of-00003.safetensors", "keys-00002-of-00003.safetensors",
        "keys-00003-of-00003.safetensors")) {
      assertThat(Files.mismatch(folder.resolve("files").resolve(file), folder.resolve("rows").resolve(file)))
          .as(file).isEqualTo(-1);
    }

    List<String> verify = new ArrayList<>(List.of("verify-keys", "--source", input.toString(), "--table",
        "parquet:" + folder.resolve("table"), "--cache", folder.resolve("rows").toString(), "--queries", "2"));
    if (isBinary) {
      verify.addAll(List.of("--key-type", "F32"));
    }

    SparkSubmitResult good = new InProcess().run(verify.toArray(String[]::new));
    assertThat(good.status()).as(good.out() + good.err()).isZero();
    assertThat(good.out()).contains("a.10: 699 keys, 0 differ").endsWith("good\n");
    Path changed = folder.resolve("rows/keys-00002-of-00003.safetensors");
    byte[] bytes = Files.readAllBytes(changed);
    Arrays.fill(bytes, 4096, bytes.length, (byte) 0x7E);
    Files.write(changed, bytes);
    SparkSubmitResult different = new InProcess().run(verify.toArray(String[]::new));
    assertThat(different.status()).as(different.err()).isEqualTo(3);
    assertThat(different.out()).contains("a.10: 699 keys, 699 differ", "damaged").endsWith("different\n");
    assertThat(cache(folder.resolve("files"), "keys-00001-of-00003.safetensors")).containsOnlyKeys("a.9.index_k");
    assertThat(cache(folder.resolve("files"), "keys-00002-of-00003.safetensors")).containsOnlyKeys("a.10.index_k");
  }

  /** Names and lengths of files tell of other keys where a table has files; elsewhere the keys do. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void otherRowsOfATableWithoutFilesAreAnotherRun(boolean isBinary) throws IOException {
    String table = TableWithoutFiles.class.getName() + ":" + folder.resolve("table");
    List<Object> arguments = new ArrayList<>(List.of("--table", table, "--output", folder.resolve("cache")));
    if (isBinary) {
      arguments.addAll(List.of("--key-type", "F32"));
    }

    byte[] keys = new byte[3 * DIM * Float.BYTES];
    random.nextBytes(keys);
    for (int i = 3; i < keys.length; i += 4) {
      keys[i] = 0x3C;
    }

    writeTable(keys, isBinary, 0, 1, 2);
    succeed(arguments.toArray());
    Map<String, String> made = Outputs.identities(folder.resolve("cache"), "");
    writeTable(keys, isBinary, 2, 0, 1);
    succeed(arguments.toArray());
    assertThat(Outputs.identities(folder.resolve("cache"), "")).as("rows in another order").isEqualTo(made);

    keys[DIM * Float.BYTES + 2] ^= 0x40;
    writeTable(keys, isBinary, 0, 1, 2);
    SparkSubmitResult other = run(arguments.toArray());
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).startsWith("Cannot write to ").contains("--overwrite").hasLineCount(1);
    assertThat(Outputs.identities(folder.resolve("cache"), "")).isEqualTo(made);
    arguments.add("--overwrite");
    succeed(arguments.toArray());
  }

  private void writeTable(byte[] keys, boolean isBinary, int... order) {
    List<Row> rows = new ArrayList<>();
    for (int token : order) {
      byte[] key = Arrays.copyOfRange(keys, token * DIM * Float.BYTES, (token + 1) * DIM * Float.BYTES);
      rows.add(RowFactory.create("l", (long) token, isBinary ? key : boxed(key)));
    }

    TestSpark.session().createDataFrame(rows, new StructType()
            .add("layer", DataTypes.StringType)
            .add("slot", DataTypes.LongType)
            .add("key", isBinary ? DataTypes.BinaryType : DataTypes.createArrayType(DataTypes.FloatType)))
        .coalesce(1).write().mode("overwrite").parquet(folder.resolve("table").toString());
  }

  private static List<Float> boxed(byte[] key) {
    List<Float> values = new ArrayList<>();
    for (float value : ElementType.F32.floats(key)) {
      values.add(value);
    }

    return values;
  }

  @Test
  void thePrologueIsCachedToo() throws Exception {
    long[] slots = shuffledSlots(90, 128);
    KeyFiles files = new KeyFiles()
        .gaussian("l.index_k", DType.BF16, 0, 100, DIM)
        .gaussian("l.kv_c", DType.BF16, 0, 100, Fp8DsMla.LATENT)
        .gaussian("l.k_pe", DType.BF16, 0, 100, Fp8DsMla.ROPE)
        .gaussian("l.q_c", DType.BF16, 0, 100, 1536)
        .gaussian("l.kv_norm_weight", DType.BF16, 1, Fp8DsMla.LATENT)
        .gaussian("l.q_norm_weight", DType.F32, 1, 1536)
        .slots("l.mla_slot_mapping", slots)
        .put("l.topk_indices_buffer", DType.I32, buffer(128, 24), 128, 24);
    Path input = files.write(folder.resolve("in/keys.safetensors"));
    Path output = folder.resolve("out");

    succeed("--input", input, "--output", output, "--eps", "1e-5");

    Map<String, StoredTensor> tensors = cache(output, "keys-00001-of-00001.safetensors");
    assertThat(tensors).containsOnlyKeys(
        "l.index_k", "l.mla", "l.kv_c_normed", "l.q_c_normed", "l.topk_indices_buffer");
    byte[] topk = buffer(128, 24);
    Arrays.fill(topk, 0, 100 * 24 * 4, (byte) -1);
    assertThat(tensors.get("l.topk_indices_buffer").data()).isEqualTo(topk);
    assertThat(tensors.get("l.topk_indices_buffer").shape()).containsExactly(128L, 24L);
    byte[] normalised = new byte[100 * 1024];
    byte[] mla = new byte[2 * 64 * Fp8DsMla.BYTES];
    Fp8DsMla.insert(new RmsNorm(ElementType.BF16.floats(files.bytes("l.kv_norm_weight")), EPS), false, ElementType.BF16,
        ByteBuffer.wrap(files.bytes("l.kv_c")), ByteBuffer.wrap(files.bytes("l.k_pe")), 100,
        ByteBuffer.wrap(normalised), LongBuffer.wrap(slots), ByteBuffer.wrap(mla), 2, 64, 64 * Fp8DsMla.BYTES);
    assertThat(tensors.get("l.mla").shape()).containsExactly(2L, 64L, 656L);
    assertThat(tensors.get("l.mla").data()).isEqualTo(mla);
    assertThat(tensors.get("l.kv_c_normed").data()).isEqualTo(normalised);
    byte[] queries = new byte[100 * 1536 * 2];
    new RmsNorm(ElementType.F32.floats(files.bytes("l.q_norm_weight")), EPS).apply(ElementType.BF16,
        ByteBuffer.wrap(files.bytes("l.q_c")), 100, ByteBuffer.wrap(queries));
    assertThat(tensors.get("l.q_c_normed").data()).isEqualTo(queries);
  }

  private static byte[] buffer(int rows, int topk) {
    byte[] bytes = new byte[rows * topk * 4];
    new Random(5).nextBytes(bytes);
    return bytes;
  }

  @Test
  void whatIsFinishedIsKept() throws Exception {
    KeyFiles good = new KeyFiles().gaussian("a.index_k", DType.BF16, 0, 70, DIM);
    KeyFiles bad = new KeyFiles().gaussian("b.index_k", DType.BF16, 0, 70, DIM);
    good.write(folder.resolve("in/a.safetensors"));
    Path poisoned = bad.write(folder.resolve("in/b.safetensors"));
    Path output = folder.resolve("out");
    byte[] repaired = Files.readAllBytes(poisoned);
    FileTime time = Files.getLastModifiedTime(poisoned);
    try (RandomAccessFile file = new RandomAccessFile(poisoned.toFile(), "rw")) {
      file.seek(file.length() - 2 * (DIM + 3));
      file.write(new byte[] {(byte) 0x80, 0x7F});
    }

    Files.setLastModifiedTime(poisoned, time);
    SparkSubmitResult refused = run("--input", folder.resolve("in"), "--output", output);
    assertThat(refused.status()).isEqualTo(1);
    assertThat(refused.err()).startsWith("Invalid value in b.index_k: token 68, element 125 is Infinity, in file file:"
        + poisoned + "; there is no code for it. Repair the source").hasLineCount(1);
    assertThat(output.resolve("keys.safetensors.index.json")).doesNotExist();
    assertThat(output.toFile().list()).containsExactly("_sparkfp4");

    Files.write(poisoned, repaired);
    Files.setLastModifiedTime(poisoned, time);
    SparkSubmitResult other = run("--input", folder.resolve("in"), "--output", output, "--scale-rule", "floor");
    assertThat(other.err()).startsWith("Cannot write to file:" + output + ": it holds a begun run of other options "
        + "(scale-rule ceil there, floor here)").contains("--overwrite");
    mark(output.resolve("_sparkfp4"));
    succeed("--input", folder.resolve("in"), "--output", output);
    // the mark is there: what was finished has not been written again
    assertThat(cache(output, "keys-00001-of-00002.safetensors").get("a.index_k").data()[5]).isEqualTo((byte) 0x77);
    assertThat(output.resolve("_sparkfp4")).doesNotExist();

    Map<String, String> files = Outputs.identities(output, ".safetensors");
    succeed("--input", folder.resolve("in"), "--output", output);
    assertThat(Outputs.identities(output, ".safetensors")).isEqualTo(files);
    assertThat(run("--input", folder.resolve("in"), "--output", output, "--page-tokens", 32).err())
        .startsWith("Cannot write to file:" + output + ": it holds a cache of other options (page-tokens 64 there, 32 here)");
    succeed("--input", folder.resolve("in"), "--output", output, "--page-tokens", 32, "--overwrite");
    assertThat(cache(output, "keys-00001-of-00002.safetensors").get("a.index_k").shape())
        .containsExactly(3L, 32L, 68L);
  }

  /** Changes a byte of the first range, once its task has left its record: others run on when one is refused. */
  private static void mark(Path staging) throws Exception {
    for (int i = 0; i < 200 && !Files.exists(staging.resolve("shards/00000.json")); i++) {
      Thread.sleep(50);
    }

    try (RandomAccessFile file = new RandomAccessFile(staging.resolve("parts/part-000000.bin").toFile(), "rw")) {
      file.seek(5);
      file.write(0x77);
    }
  }
}
