package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.GoldenFile;
import org.sparkfp4.formats.KeyCache;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.LayerNorm;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.formats.ScaleRule;

class KeySqlFunctionsTest {
  private static final int TOKENS = 5;
  private static final int DIM = 128;
  private static final float EPS = 1e-5f;

  private final SparkSession spark = TestSpark.extended();
  private final Random random = new Random(23);

  private void view(String name, Object... namesAndBytes) {
    StructType schema = new StructType();
    Object[] values = new Object[namesAndBytes.length / 2];
    for (int i = 0; i < values.length; i++) {
      schema = schema.add((String) namesAndBytes[2 * i], DataTypes.BinaryType);
      values[i] = namesAndBytes[2 * i + 1];
    }

    spark.createDataFrame(List.of(RowFactory.create(values)), schema).createOrReplaceTempView(name);
  }

  private Row select(String expression, String view) {
    return spark.sql("SELECT " + expression + " AS r FROM " + view).collectAsList().get(0);
  }

  @Test
  void quantizedTensorsAreTheProducersAndDecode() {
    GoldenFile golden = GoldenFile.open("mxfp4_tensors");
    view("tensors", "payload", golden.tensor("heavy_bf16.x").bytes());
    Row row = select("mxfp4_quantize(payload, 'BF16', 128)", "tensors").getStruct(0);
    assertThat(row.<byte[]>getAs("packed")).isEqualTo(golden.tensor("heavy_bf16.packed").bytes());
    assertThat(row.<byte[]>getAs("scales")).isEqualTo(golden.tensor("heavy_bf16.ue8m0").bytes());
    Row floor = select("mxfp4_quantize(payload, 'BF16', 128, 'floor')", "tensors").getStruct(0);
    assertThat(floor.<byte[]>getAs("scales")).isNotEqualTo(row.<byte[]>getAs("scales"));

    view("quantized", "packed", new byte[] {(byte) 0xF2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "scales",
        new byte[] {(byte) 128});
    byte[] payload = select("mxfp4_dequantize(packed, scales)", "quantized").getAs(0);
    assertThat(ElementType.F32.floats(payload)).startsWith(2, -12, 0).hasSize(32);
    assertThat(select("mxfp4_dequantize(packed, NULL)", "quantized").isNullAt(0)).isTrue();
    assertThat(select("mxfp4_quantize(NULL, 'BF16', 32)", "quantized").isNullAt(0)).isTrue();
  }

  @Test
  void queriesAreTheProducers() {
    GoldenFile golden = GoldenFile.open("mxfp4_query");
    view("queries", "q", golden.tensor("index_q").bytes(), "w", golden.tensor("index_weights").bytes());
    Row row = select("mxfp4_q_quant(q, 'BF16', w, 'BF16', CAST(" + golden.tensor("weight_scale").scalar()
        + " AS FLOAT), 12, 16)", "queries").getStruct(0);
    assertThat(row.<byte[]>getAs("q_packed")).isEqualTo(golden.tensor("q_packed").bytes());
    assertThat(row.<byte[]>getAs("q_scale")).isEqualTo(golden.tensor("q_scale").bytes());
    assertThat(row.<byte[]>getAs("weights")).isEqualTo(golden.tensor("weights").bytes());
  }

  @Test
  void insertedKeysAreTheReferences() {
    byte[] keys = bf16(TOKENS * DIM);
    byte[] weight = bf16(DIM);
    byte[] bias = f32(DIM);
    long[] slots = {3, -1, 64, 0};
    view("batches", "k", keys, "w", weight, "b", bias, "slots", i64(slots), "topk", new byte[6 * 8]);
    byte[] expected = new byte[2 * 4352];
    LayerNorm norm = new LayerNorm(ElementType.BF16.floats(weight), ElementType.F32.floats(bias), EPS);
    insert(new KeyForm(DIM, norm, false, false, ScaleRule.CEIL), keys, slots, expected);
    Row row = select("mxfp4_k_norm_quant_insert(k, 'BF16', 128, w, b, 1e-5, slots, NULL, 64, topk, 2)", "batches")
        .getStruct(0);
    assertThat(row.<byte[]>getAs("kv_cache")).isEqualTo(expected);
    byte[] topk = row.getAs("topk_indices");
    assertThat(Arrays.copyOf(topk, 40)).containsOnly(-1);
    assertThat(Arrays.copyOfRange(topk, 40, 48)).containsOnly(0);

    byte[] filled = new byte[2 * 4352];
    Arrays.fill(filled, (byte) 0x5A);
    view("plain", "k", keys, "slots", i64(slots), "cache", filled);
    byte[] given = filled.clone();
    insert(KeyForm.plain(DIM), keys, slots, given);
    row = select("mxfp4_k_norm_quant_insert(k, 'BF16', 128, NULL, NULL, NULL, slots, cache, 64, NULL, NULL)", "plain")
        .getStruct(0);
    assertThat(row.<byte[]>getAs("kv_cache")).isEqualTo(given);
    assertThat(row.isNullAt(1)).isTrue();
  }

  @Test
  void thePrologueIsItsPartsTogether() {
    byte[] queries = bf16(TOKENS * 1536);
    byte[] latents = bf16(TOKENS * Fp8DsMla.LATENT);
    byte[] rope = bf16(TOKENS * Fp8DsMla.ROPE);
    byte[] keys = bf16(TOKENS * DIM);
    byte[] queryWeight = bf16(1536);
    byte[] latentWeight = bf16(Fp8DsMla.LATENT);
    byte[] keyWeight = bf16(DIM);
    byte[] keyBias = bf16(DIM);
    long[] slots = {3, -1, 65, 0, 9};
    view("prologue", "q", queries, "kv", latents, "pe", rope, "k", keys, "qw", queryWeight, "kvw", latentWeight, "kw",
        keyWeight, "kb", keyBias, "slots", i64(slots), "topk", new byte[TOKENS * 12]);
    Row row = select("mxfp4_fused_prologue(q, kv, pe, k, 'BF16', qw, kvw, kw, kb, 1e-5, topk, 3, X'', slots, X'', slots, "
        + "32, 64)", "prologue").getStruct(0);

    byte[] expected = new byte[queries.length];
    new RmsNorm(ElementType.BF16.floats(queryWeight), EPS)
        .apply(ElementType.BF16, ByteBuffer.wrap(queries), TOKENS, ByteBuffer.wrap(expected));
    assertThat(row.<byte[]>getAs("q_c_normed")).isEqualTo(expected);

    byte[] normalised = new byte[latents.length];
    byte[] mla = new byte[3 * 32 * Fp8DsMla.BYTES];
    Fp8DsMla.insert(new RmsNorm(ElementType.BF16.floats(latentWeight), EPS), false, ElementType.BF16,
        ByteBuffer.wrap(latents), ByteBuffer.wrap(rope), TOKENS, ByteBuffer.wrap(normalised),
        LongBuffer.wrap(slots), ByteBuffer.wrap(mla), 3, 32, 32 * Fp8DsMla.BYTES);
    assertThat(row.<byte[]>getAs("kv_c_normed")).isEqualTo(normalised);
    assertThat(row.<byte[]>getAs("mla_cache")).isEqualTo(mla);

    byte[] index = new byte[2 * 4352];
    LayerNorm norm = new LayerNorm(ElementType.BF16.floats(keyWeight), ElementType.BF16.floats(keyBias), EPS);
    insert(new KeyForm(DIM, norm, false, false, ScaleRule.CEIL), keys, slots, index);
    assertThat(row.<byte[]>getAs("index_cache")).isEqualTo(index);
    assertThat(row.<byte[]>getAs("topk_indices")).hasSize(TOKENS * 12).containsOnly(-1);

    row = select("mxfp4_fused_prologue(q, kv, pe, k, 'BF16', qw, kvw, kw, kb, 1e-5, NULL, NULL, NULL, slots, X'', NULL, "
        + "32, 64)", "prologue").getStruct(0);
    assertThat(row.<byte[]>getAs("kv_c_normed")).isEqualTo(normalised);
    assertThat(row.isNullAt(2)).isTrue();
    assertThat(row.isNullAt(3)).isTrue();
    assertThat(row.isNullAt(4)).isTrue();
  }

  @Test
  void whatDoesNotGoTogetherIsRefused() {
    byte[] keys = bf16(TOKENS * DIM);
    view("bad", "k", keys, "slots", i64(0, 1, 2, 3, 1), "w", new byte[100], "topk", new byte[8]);
    assertRefused("mxfp4_quantize(k, 'BF16', 48)", "Invalid cols: 48, must be a positive multiple of 32 below 2^31");
    assertRefused("mxfp4_quantize(k, 'BF16', 256)", "Invalid payload: 1280 bytes, must be rows of 512");
    assertRefused("mxfp4_quantize(k, 'I8', 128)", "Invalid dtype: I8, must be BF16, F16 or F32");
    assertRefused("mxfp4_k_norm_quant_insert(k, 'BF16', 128, NULL, NULL, NULL, slots, NULL, 64, NULL, NULL)",
        "Invalid slot of token 4: 1, token 1 has it already; a slot holds one token");
    assertRefused("mxfp4_k_norm_quant_insert(k, 'BF16', 128, w, NULL, NULL, slots, NULL, 64, NULL, NULL)",
        "Invalid norm_weight: 100 bytes, must be 256");
    assertRefused("mxfp4_k_norm_quant_insert(k, 'BF16', 128, NULL, NULL, NULL, slots, NULL, 64, topk, 1)",
        "Invalid topk_indices_buffer: 2 rows, must be 5 at least, one a token");
    assertRefused("mxfp4_q_quant(k, 'BF16', w, 'F32', 1.0, 1, 1)", "Invalid index_weights: 100 bytes, must be 20");
    assertRefused("mxfp4_quantize(k, 'BF16', 9223372036854775776)",
        "Invalid cols: 9223372036854775776, must be a positive multiple of 32 below 2^31");
    assertRefused("mxfp4_q_quant(k, 'BF16', w, 'I8', 1.0, 1, 1)", "Invalid weights_dtype: I8, must be BF16, F16 or F32");
    assertRefused("mxfp4_q_quant(k, 'BF16', w, 'F32', 1.0, 5, 4)",
        "Invalid padded_num_heads: 4, must be num_heads, 5, at least");
    assertRefused("mxfp4_q_quant(k, 'BF16', X'0000000000000000000000000000000000000000', 'F32', 1.0, 1, 2147483647)",
        "Invalid padded_num_heads: 2147483647, queries of 5 tokens have 687194767040 bytes then, must be below 2 GiB");
    view("bad", "k", keys, "slots", i64(Long.MAX_VALUE - 128));
    assertRefused("mxfp4_k_norm_quant_insert(k, 'BF16', 128, NULL, NULL, NULL, slots, NULL, 64, NULL, NULL)",
        "Invalid slot_mapping: its slot 9223372036854775679 needs a cache of 144115188075855870 pages of 4352 bytes, "
            + "must be below 2 GiB");
    keys[2 * (3 * DIM + 7)] = (byte) 0xC0;
    keys[2 * (3 * DIM + 7) + 1] = 0x7F;
    view("bad", "k", keys);
    assertRefused("mxfp4_quantize(k, 'BF16', 128)", "Invalid value: NaN at element 7 of row 3, must be finite");
  }

  private void assertRefused(String expression, String message) {
    Throwable error = catchThrowable(() -> select(expression, "bad"));
    assertThat(Queries.chain(error)).as(expression).anySatisfy(cause -> assertThat(cause).hasMessage(message));
  }

  @Test
  void functionsDescribeThemselves() {
    for (String function : List.of("mxfp4_quantize", "mxfp4_dequantize", "mxfp4_k_norm_quant_insert", "mxfp4_q_quant",
        "mxfp4_fused_prologue")) {
      String text = spark.sql("DESCRIBE FUNCTION EXTENDED " + function).collectAsList().toString();
      assertThat(text).contains(function + "(").contains("BINARY");
    }
  }

  private static void insert(KeyForm form, byte[] keys, long[] slots, byte[] cache) {
    KeyPage page = new KeyPage(64, DIM);
    KeyCache.insert(form, ElementType.BF16, ByteBuffer.wrap(keys), TOKENS, LongBuffer.wrap(slots),
        ByteBuffer.wrap(cache), cache.length / page.bytes(), page, page.bytes());
  }

  private byte[] bf16(int elements) {
    ByteBuffer bytes = ByteBuffer.allocate(2 * elements).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      bytes.putShort(BFloat16.fromFloat((float) random.nextGaussian()));
    }

    return bytes.array();
  }

  private byte[] f32(int elements) {
    ByteBuffer bytes = ByteBuffer.allocate(4 * elements).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      bytes.putFloat((float) random.nextGaussian());
    }

    return bytes.array();
  }

  private static byte[] i64(long... slots) {
    ByteBuffer bytes = ByteBuffer.allocate(8 * slots.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asLongBuffer().put(slots);
    return bytes.array();
  }
}
