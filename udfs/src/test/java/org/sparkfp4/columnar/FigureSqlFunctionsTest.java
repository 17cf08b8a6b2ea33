package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.data.Percentage.withPercentage;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.util.ArrowUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleChoice;
import org.sparkfp4.formats.ScaleRule;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.TensorSummary;
import org.sparkfp4.functions.WeightRow;

/** The functions that look into tensors, on columns and row by row. */
class FigureSqlFunctionsTest {
  private static final int WITHOUT_DATA = 3;

  private final SparkSession spark = TestSpark.extended();
  private final long memoryBefore = ArrowUtils.rootAllocator().getAllocatedMemory();

  @BeforeEach
  void table() {
    Queries.units(spark).createOrReplaceTempView("tensors");
  }

  @AfterEach
  void noTaskLeavesMemory() {
    assertThat(ArrowUtils.rootAllocator().getAllocatedMemory()).isEqualTo(memoryBefore);
  }

  @ParameterizedTest
  @CsvSource({"auto,rtn", "off,rtn", "auto,four-over-six", "auto,sweep", "off,sweep"})
  void errorIsThatOfTheReference(String mode, String search) {
    for (Row row : query(mode, "nvfp4_error(data0, dtype, cols, '" + search + "')")) {
      WeightRow tensor = UnitPartition.unit(row.getInt(0));
      ErrorSums sums = new ErrorSums();
      float amax = Nvfp4.amax(tensor.type(), ByteBuffer.wrap(tensor.members()[0]));
      ScaleSearch named = ScaleSearch.named(search);
      ByteBuffer room = ByteBuffer.allocate(tensor.members()[0].length);
      Nvfp4.encode(Nvfp4Recipe.MODELOPT, ScaleChoice.of(named), tensor.type(), ByteBuffer.wrap(tensor.members()[0]),
          rows(tensor), tensor.cols(), named.globalScale(Nvfp4Recipe.MODELOPT, amax, tensor.type()), room,
          ByteBuffer.allocate(room.capacity()), sums);
      assertThat(row.getStruct(1)).isEqualTo(errorRow(sums));
    }
  }

  @Test
  void errorIsByRtnUnlessSaid() {
    Dataset<Row> query = spark.sql("SELECT nvfp4_error(data0, dtype, cols) = nvfp4_error(data0, dtype, cols, 'rtn'), "
        + "nvfp4_error(data0, dtype, cols).squared_error > nvfp4_error(data0, dtype, cols, 'sweep').squared_error "
        + "FROM tensors WHERE data0 IS NOT NULL");
    assertThat(query.collectAsList()).hasSize(Queries.UNITS - 1)
        .allSatisfy(row -> assertThat(row.getBoolean(0) && row.getBoolean(1)).isTrue());
  }

  @Test
  void zerosLoseNothing() {
    Row error = spark.sql("SELECT nvfp4_error(X'" + "00".repeat(64) + "', 'BF16', 16) AS e").first().getStruct(0);
    assertThat(error.getDouble(0)).isZero();
    assertThat(error.getDouble(2)).isZero();
    assertThat(error.isNullAt(3)).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"auto", "off"})
  void aWeightThatIsNotFiniteIsAnErrorThatNamesIt(String mode) {
    spark.conf().set(ColumnarMode.CONF, mode);
    Queries.units(spark, Map.of("nan", "6", "partitions", "1")).createOrReplaceTempView("tensors");
    Throwable error =
        catchThrowable(() -> spark.sql("SELECT nvfp4_error(data0, dtype, cols) FROM tensors").collectAsList());
    assertThat(Queries.chain(error)).filteredOn(NonFiniteException.class::isInstance).singleElement()
        .satisfies(cause -> assertThat(cause.getMessage()).contains("NaN at element 5 of segment 0"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"auto", "off"})
  void statsAreTheSummary(String mode) {
    for (Row row : query(mode, "tensor_stats(data0, dtype)")) {
      WeightRow tensor = UnitPartition.unit(row.getInt(0));
      TensorSummary summary = TensorSummary.of(tensor.type(), ByteBuffer.wrap(tensor.members()[0]));
      Row stats = row.getStruct(1);
      assertThat(stats.getLong(0)).isEqualTo(summary.elements());
      assertThat(stats.getFloat(6)).isEqualTo(summary.amax());
      assertThat(List.of(stats.getDouble(7), stats.getDouble(8), stats.getDouble(9)))
          .containsExactly(summary.mean(), summary.deviation(), summary.kurtosis());
    }
  }

  @Test
  void statsOfNothingAreNullButForTheCounts() {
    Row stats = spark.sql("SELECT tensor_stats(X'c07f807f', 'BF16') AS s").first().getStruct(0);
    assertThat(stats.toString()).isEqualTo("[2,0,1,1,null,null,null,null,null,null]");
  }

  @Test
  void valuesAreWidenedExactly() {
    Row row = spark.sql("SELECT tensor_values(X'803f40c0', 'BF16'), tensor_values(X'003c00c4', 'F16'), "
        + "tensor_values(X'0000803f', 'F32'), tensor_values(X'387e', 'F8_E4M3'), tensor_values(X'7f80', 'F8_E8M0'), "
        + "tensor_values(NULL, 'F32')").first();
    assertThat(row.toString()).isEqualTo("[ArraySeq(1.0, -3.0),ArraySeq(1.0, -4.0),ArraySeq(1.0),ArraySeq(1.0, 448.0),"
        + "ArraySeq(1.0, 2.0),null]");
    assertMessage("tensor_values(X'00', 'U8')", "Invalid dtype: U8, must be BF16, F16, F32, F8_E4M3 or F8_E8M0");
    assertMessage("tensor_values(X'00', 'BF16')", "Invalid payload: 1 bytes, must be rows of 2");
  }

  @ParameterizedTest
  @ValueSource(strings = {"auto", "off"})
  void dequantizedIsTheReferencesValues(String mode, @TempDir Path folder) {
    spark.conf().set(ColumnarMode.CONF, mode);
    String file = folder.resolve("quantized.parquet").toString();
    spark.sql("SELECT unit, q.packed, q.scales, q.global_scale FROM "
        + "(SELECT unit, nvfp4_quantize(data0, dtype, cols, 'sweep') AS q FROM tensors)").write().parquet(file);
    Dataset<Row> query = spark.read().parquet(file)
        .selectExpr("unit", "packed", "scales", "global_scale", "nvfp4_dequantize(packed, scales, global_scale) AS w",
            "nvfp4_dequantize(packed, scales, 1 / global_scale, 'compressed-tensors') AS divided");
    if (mode.equals("auto")) {
      assertThat(spark.read().parquet(file).selectExpr("nvfp4_dequantize(packed, scales, global_scale) AS w")
          .queryExecution().executedPlan().toString()).contains("ArrowProject");
      Dataset<Row> alone =
          spark.read().parquet(file).selectExpr("unit", "nvfp4_dequantize(packed, scales, global_scale) AS w");
      assertThat(alone.collectAsList()).containsExactlyInAnyOrderElementsOf(query.select("unit", "w").collectAsList());
    }

    List<Row> rows = query.collectAsList();
    assertThat(rows).hasSize(Queries.UNITS);
    for (Row row : rows) {
      assertThat(row.isNullAt(4)).isEqualTo(row.getInt(0) == WITHOUT_DATA);
      if (!row.isNullAt(4)) {
        byte[] packed = row.getAs("packed");
        float[] expected = new float[packed.length * 2];
        Nvfp4.decode(Nvfp4Recipe.MODELOPT, ByteBuffer.wrap(packed), ByteBuffer.wrap(row.<byte[]>getAs("scales")), 1,
            expected.length, row.getFloat(3), FloatBuffer.wrap(expected));
        assertThat(floats(row.getAs("w"))).isEqualTo(expected);
        assertThat(floats(row.getAs("divided"))[0]).isCloseTo(expected[0], withPercentage(1e-4));
      }
    }
  }

  @Test
  void mxfp4ErrorIsThatOfTheReference() {
    Row row = spark.sql("SELECT unhex(repeat('803f40c0a53e1234', 16)) AS p").selectExpr("p",
        "mxfp4_error(p, 'BF16', 32, 'even') AS e", "mxfp4_error(p, 'BF16', 32) AS ceil").first();
    byte[] payload = row.getAs(0);
    ByteBuffer packed = ByteBuffer.allocate(32);
    ByteBuffer scales = ByteBuffer.allocate(2);
    Mxfp4Codec.encode(
        ScaleRule.EVEN, ElementType.BF16, ByteBuffer.wrap(payload), 2, 32, packed, scales);
    float[] decoded = new float[64];
    Mxfp4Codec.decode(packed, scales, decoded);
    float[] values = ElementType.BF16.floats(payload);
    double squares = 0;
    double lost = 0;
    for (int i = 0; i < values.length; i++) {
      squares += values[i] * values[i];
      lost += (values[i] - decoded[i]) * (values[i] - decoded[i]);
    }

    assertThat(lost).isPositive();
    assertThat(row.getStruct(1).getDouble(0)).isCloseTo(squares, withPercentage(1e-4));
    assertThat(row.getStruct(1).getDouble(1)).isCloseTo(lost, withPercentage(1e-4));
  }

  @Test
  void aSearchOrRecipeThatIsNoneIsRefusedBeforeTheQuery() {
    assertMessage("nvfp4_quantize(data0, dtype, cols, 'best')", "Invalid search: best, must be rtn, four-over-six or sweep");
    for (String function : List.of("nvfp4_quantize", "nvfp4_error")) {
      assertMessage(function + "(data0, dtype, 9223372036854775792)",
          "Invalid cols: 9223372036854775792, must be 4294967296 at most");
      assertMessage(function + "(data0, dtype, 16.5)", "Invalid argument of " + function + ": 16.5BD is DECIMAL(3,1), "
          + "must be an integer");
    }

    for (String call : List.of("nvfp4_error(X'00', 'BF16', 16)", "nvfp4_amax(X'00', 'BF16')")) {
      assertMessage(call, "Invalid payload (data0): 1 bytes are no whole number of BF16 elements");
    }

    assertMessage("nvfp4_error(data0, dtype, cols, 'weighted')", "Invalid search: weighted needs statistics");
    assertMessage("nvfp4_error(data0, dtype, cols, dtype)", "Invalid search: tensors.dtype, must be a string literal");
    assertMessage("nvfp4_dequantize(data0, data0, 1.0, 'gguf')",
        "Invalid recipe: gguf, must be modelopt or compressed-tensors");
    assertMessage("nvfp4_dequantize(X'00', X'00', 1.0)",
        "Invalid scales: 1 bytes for 1 bytes of codes, must be one for every 8");
  }

  /** Of a column Spark would cut the fraction off, and of a number in a string too, with ANSI rules or without. */
  @ParameterizedTest
  @ValueSource(strings = {
      "nvfp4_quantize(data0, dtype, wrong)", "nvfp4_error(data0, dtype, wrong, 'rtn')",
      "mxfp4_quantize(data0, dtype, wrong)", "mxfp4_error(data0, dtype, wrong)",
      "mxfp4_k_norm_quant_insert(data0, dtype, wrong, NULL, NULL, 1e-6, data1, NULL, 64, NULL, NULL)",
      "mxfp4_k_norm_quant_insert(data0, dtype, 32, NULL, NULL, 1e-6, data1, NULL, wrong, NULL, NULL)",
      "mxfp4_q_quant(data0, dtype, data1, dtype, 1.0, wrong, 32)"})
  void aSizeOfAColumnThatIsNoIntegerIsRefused(String call) {
    for (String ansi : List.of("true", "false")) {
      spark.conf().set("spark.sql.ansi.enabled", ansi);
      for (String type : List.of("DOUBLE", "FLOAT", "DECIMAL(10, 1)", "STRING")) {
        spark.sql("SELECT *, CAST(16.5 AS " + type + ") AS wrong FROM tensors").createOrReplaceTempView("wrong");
        assertThatThrownBy(() -> spark.sql("SELECT " + call + " FROM wrong"))
            .hasMessageContaining("wrong is " + type.replace(" ", "") + ", must be an integer");
      }
    }

    assertThat(spark.sql("SELECT " + call.replace("wrong", "CAST(wrong AS BIGINT)") + " FROM wrong").schema()).isNotNull();
  }

  @ParameterizedTest
  @ValueSource(strings = {"nvfp4_quantize", "nvfp4_dequantize", "nvfp4_amax", "nvfp4_error", "mxfp4_quantize",
      "mxfp4_dequantize", "mxfp4_error", "mxfp4_k_norm_quant_insert", "mxfp4_q_quant", "mxfp4_fused_prologue",
      "tensor_stats", "tensor_values"})
  void everyFunctionDescribesItself(String function) {
    String text = spark.sql("DESCRIBE FUNCTION EXTENDED " + function).collectAsList().stream()
        .map(row -> row.getString(0)).collect(Collectors.joining("\n"));
    assertThat(text).contains("Usage: " + function + "(").contains("Arguments:\n      * ").contains("Examples:\n")
        .contains(function + "(").contains("Note:\n").contains("Since: 0.1.0");
  }

  @Test
  void nothingIsInjectedThatTheListAboveHasNot() {
    assertThat(spark.sql("SHOW FUNCTIONS LIKE '*fp4*|tensor_*'").collectAsList()).hasSize(12);
  }

  /** The query's rows that have data; that without gives null. */
  private List<Row> query(String mode, String function) {
    spark.conf().set(ColumnarMode.CONF, mode);
    Dataset<Row> query = spark.sql("SELECT unit, " + function + " AS value FROM tensors");
    assertThat(query.queryExecution().executedPlan().toString().contains("ArrowProject")).isEqualTo(mode.equals("auto"));
    List<Row> rows = query.collectAsList();
    assertThat(rows).hasSize(Queries.UNITS);
    assertThat(rows).filteredOn(row -> row.isNullAt(1)).extracting(row -> row.getInt(0)).containsExactly(WITHOUT_DATA);
    return rows.stream().filter(row -> !row.isNullAt(1)).toList();
  }

  private void assertMessage(String expression, String message) {
    assertThatThrownBy(() -> spark.sql("SELECT " + expression + " FROM tensors").collectAsList())
        .satisfies(error -> assertThat(Queries.chain(error)).anySatisfy(
            cause -> assertThat(cause.getMessage()).contains(message)));
  }

  private static Row errorRow(ErrorSums sums) {
    double relative = Math.sqrt(sums.squaredErrors() / sums.squares());
    return RowFactory.create(
        sums.squares(), sums.squaredErrors(), relative, -20 * Math.log10(relative));
  }

  private static long rows(WeightRow tensor) {
    return tensor.members()[0].length / tensor.type().bytes() / tensor.cols();
  }

  private static float[] floats(byte[] payload) {
    float[] values = new float[payload.length / Float.BYTES];
    ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(values);
    return values;
  }
}
