package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.TestSpark;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.safetensors.DType;

/** Keys that cannot be cached: each is told in a line, and no cache is left. */
class QuantizeKeysRefusalTest {
  private static final int DIM = 128;

  @TempDir
  private Path folder;

  private final Random random = new Random(3);

  private SparkSubmitResult run(Object... arguments) {
    return new InProcess().runAll(Stream.concat(Stream.of("quantize-keys"), Arrays.stream(arguments)).toArray());
  }

  @Test
  void topkRowsThatCannotBeAreRefused() throws Exception {
    KeyFiles keys = new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 100, DIM);
    keys.put("l.topk_indices_buffer", DType.I32, new byte[99 * 24 * 4], 99, 24).write(folder.resolve("in/keys.safetensors"));
    SparkSubmitResult few = run("--input", folder.resolve("in"), "--output", folder.resolve("out"));
    assertThat(few.status()).isEqualTo(1);
    assertThat(few.err()).contains("Invalid tensor l.topk_indices_buffer in file", "it is I32 [99, 24], must be I32 "
        + "[rows, topk] of at least 100 rows, one for each token of l.index_k").hasLineCount(1);
    assertThat(folder.resolve("out")).doesNotExist();

    keys.put("l.topk_indices_buffer", DType.F32, new byte[100 * 24 * 4], 100, 24).write(folder.resolve("in/keys.safetensors"));
    assertThat(run("--input", folder.resolve("in"), "--output", folder.resolve("out")).err())
        .contains("it is F32 [100, 24], must be I32");
  }

  @Test
  void whatHeadersAndSlotsShowIsRefusedBeforeAnythingIsWritten() throws IOException {
    KeyFiles keys = new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, DIM);
    assertRefused(keys.gaussian("l.k_norm.weight", DType.F32, 1, DIM), "Invalid tensor l.k_norm.weight in file ",
        "layer l has no k_norm.bias", "--eps", "1e-6");
    keys.gaussian("l.k_norm.bias", DType.F32, 1, DIM);
    assertRefused(keys, "Invalid tensor l.k_norm.weight in file ", "a norm needs its epsilon; give --eps");
    assertRefused(new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, 100), "Invalid tensor l.index_k in file ",
        "its keys have 100 values, must be a multiple of 32");
    assertRefused(new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, 96),
        "Invalid key size: 96, must be a power of two for the Hadamard transform", "", "--hadamard");
    assertRefused(new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, 2, 64), "Invalid tensor l.index_k in file ",
        "its shape is [4, 2, 64], must be [tokens, values]");
    assertRefused(new KeyFiles().gaussian("l.k", DType.BF16, 0, 4, 64), "Invalid input: ",
        " has no tensor called LAYER.index_k");
    assertRefused(slotted(0, 1, 2, 3, 4), "Invalid tensor l.slot_mapping in file ",
        "it is I64 [5], must be I64 of 4 slots at most, one for each token of l.index_k");
    assertRefused(slotted(0, 1, 64), "Invalid slot in l.slot_mapping: 64 of token 2, must be below 64: --pages 1 of 64",
        "", "--pages", 1);
    assertRefused(new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, DIM)
        .gaussian("l.kv_c", DType.BF16, 0, 4, Fp8DsMla.LATENT), "Invalid tensor l.kv_c in file ",
        "there is no l.kv_norm_weight to normalise it");
    assertRefused(new KeyFiles().put("l.index_k", DType.I8, new byte[64], 2, 32), "Invalid tensor l.index_k in file ",
        "it is of I8, must be BF16, F16 or F32");
  }

  private static KeyFiles slotted(long... slots) {
    return new KeyFiles().gaussian("l.index_k", DType.BF16, 0, 4, DIM).slots("l.slot_mapping", slots);
  }

  private void assertRefused(KeyFiles files, String begin, String end, Object... options) throws IOException {
    Path input = files.write(folder.resolve("refused/in-" + random.nextInt() + ".safetensors"));
    Path output = folder.resolve("none");
    List<Object> arguments = new ArrayList<>(List.of("--input", input, "--output", output));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = run(arguments.toArray());
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).startsWith(begin).contains(end).hasLineCount(1);
    assertThat(output).doesNotExist();
  }

  @Test
  void twoTokensOfOneSlotAreRefused() throws IOException {
    Path input = slotted(5, -1, 9, 5).write(folder.resolve("in/keys.safetensors"));
    SparkSubmitResult result = run("--input", input, "--output", folder.resolve("out"));
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err().strip()).isEqualTo("Invalid slot in l.slot_mapping: 5 of token 3, token 0 has it already, in "
        + "file file:" + input + "; a slot holds one token. Give one of them another slot, or a negative one to leave it "
        + "out, and start again with --overwrite");
    assertThat(folder.resolve("out/keys.safetensors.index.json")).doesNotExist();
  }

  @Test
  void tablesThatCannotBeAreRefused() {
    StructType schema = new StructType().add("layer", DataTypes.StringType).add("slot", DataTypes.LongType)
        .add("key", DataTypes.BinaryType);
    assertTable(schema, List.of(RowFactory.create("l", 1L, new byte[64]), RowFactory.create("l", 2L, new byte[128])),
        "keys of layer l have from 64 to 128 bytes, must be as many");
    assertTable(schema, List.of(RowFactory.create("l", 1L, new byte[62])),
        "keys of layer l have 62 bytes, must be a multiple of 32 values of BF16");
    assertTable(schema, List.of(RowFactory.create("l", null, new byte[64])), "whose layer, slot or key is null");
    assertTable(schema, List.of(), "it has no rows");
    StructType doubles = new StructType().add("layer", DataTypes.StringType).add("slot", DataTypes.DoubleType)
        .add("key", DataTypes.BinaryType);
    for (Object slot : new Object[] {1.5, -0.5, Double.NaN, 1e19}) {
      assertTable(doubles,
          List.of(RowFactory.create("k", 4.0, new byte[64]), RowFactory.create("l", slot, new byte[64])),
          ": layer l has a row of slot " + slot + ", must be an integer of 64 bits");
    }

    assertTable(new StructType().add("layer", DataTypes.StringType).add("slot", DataTypes.StringType)
        .add("key", DataTypes.BinaryType), List.of(RowFactory.create("l", "1", new byte[64])),
        "its column slot is STRING, must be BIGINT or another number");
    assertTable(schema, List.of(RowFactory.create("l", 1L, new byte[64]), RowFactory.create("l", 1L, new byte[64])),
        "Invalid slot in l: 1 of a row, another row has it already, in table parquet:");
    byte[] nan = new byte[64];
    nan[10] = (byte) 0xC0;
    nan[11] = 0x7F;
    assertTable(schema, List.of(RowFactory.create("l", 7L, nan)),
        "Invalid value in l: the key of slot 7, element 5 is NaN");
    assertTable(new StructType().add("layer", DataTypes.StringType).add("slot", DataTypes.LongType),
        List.of(RowFactory.create("l", 7L)), "it has no column key; it must have layer, slot and key");
  }

  private void assertTable(StructType schema, List<Row> rows, String message) {
    String table = folder.resolve("table-" + random.nextInt()).toString();
    TestSpark.session().createDataFrame(rows, schema).write().parquet(table);
    SparkSubmitResult result = run("--table", "parquet:" + table, "--key-type", "BF16", "--output",
        folder.resolve("none-" + random.nextInt()));
    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err()).contains(message).hasLineCount(1);
  }

  @Test
  void commandLinesThatCannotBeAreRefused() {
    assertThat(run("--output", folder.resolve("out")).status()).isEqualTo(2);
    assertUsage("Invalid --page-tokens: 48 (must be 64 or 32)", "--page-tokens", 48);
    assertUsage("Invalid --eps: -1.0 (must be positive and finite)", "--eps", -1);
    assertUsage("Invalid scale rule: up, must be one of ceil, floor, even, best-of-two", "--scale-rule", "up");
    assertUsage("Invalid --key-type: BF16 (only with --table)", "--key-type", "BF16");
    assertUsage("Invalid --pages: 0 (must be from 1 to 2147483646)", "--pages", 0);
  }

  private void assertUsage(String message, Object... options) {
    List<Object> arguments =
        new ArrayList<>(List.of("--input", folder.resolve("in"), "--output", folder.resolve("out")));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = run(arguments.toArray());
    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).contains(message);
  }
}
