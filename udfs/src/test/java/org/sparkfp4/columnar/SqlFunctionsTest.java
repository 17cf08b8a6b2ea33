package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.SparkThrowableHelper;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.functions.QuantizedRow;
import org.sparkfp4.functions.WeightRow;
import org.sparkfp4.kernels.KernelChoice;

class SqlFunctionsTest {
  private final SparkSession spark = TestSpark.extended();

  @BeforeEach
  void table() {
    Queries.units(spark).createOrReplaceTempView("tensors");
  }

  @Test
  void quantizeIsTheOneTensorForm() {
    Dataset<Row> query = spark.sql("SELECT unit, nvfp4_quantize(data0, dtype, cols) AS q FROM tensors");
    assertThat(query.queryExecution().executedPlan().toString()).contains("ArrowProject");
    assertThat(query.schema().apply("q").dataType().sql())
        .isEqualTo("STRUCT<packed: BINARY, scales: BINARY, amax: FLOAT, sum_squares: ARRAY<DOUBLE>, "
            + "squared_error: ARRAY<DOUBLE>, global_scale: FLOAT, requantized: ARRAY<BIGINT>>");
    List<Row> rows = query.collectAsList();
    assertThat(rows).hasSize(Queries.UNITS);
    for (Row row : rows) {
      assertThat(QuantizedRow.of(row.<Row>getAs(1))).isEqualTo(single(row.getInt(0)).reference(Nvfp4Recipe.MODELOPT));
    }
  }

  @Test
  void amaxIsTheLargestMagnitude() {
    Dataset<Row> query =
        spark.sql("SELECT unit, nvfp4_amax(data0, dtype) AS amax FROM tensors WHERE data0 IS NOT NULL");
    for (Row row : query.collectAsList()) {
      assertThat(row.getFloat(1)).isEqualTo(single(row.getInt(0)).referenceAmax());
    }

    Dataset<Row> all = spark.sql("SELECT unit, nvfp4_amax(data0, dtype) AS amax FROM tensors");
    assertThat(all.queryExecution().executedPlan().toString()).contains("ArrowProject");
    assertThat(all.where("amax IS NULL").select("unit").as(Encoders.INT()).collectAsList())
        .containsExactly(3);
  }

  @Test
  void anIntegerLiteralIsCast() {
    Dataset<Row> query = spark.sql("SELECT nvfp4_quantize(data0, 'BF16', 16) AS q FROM tensors WHERE unit = 0");
    assertThat(query.collectAsList().get(0).getStruct(0).<byte[]>getAs("packed"))
        .hasSize(single(0).members()[0].length / 4);
  }

  @Test
  void aCallWithTheWrongArgumentsIsAnAnalysisError() {
    assertThatThrownBy(() -> spark.sql("SELECT nvfp4_quantize(data0, dtype) FROM tensors"))
        .isInstanceOf(AnalysisException.class)
        .hasMessageContaining("WRONG_NUM_ARGS")
        .hasMessageContaining("nvfp4_quantize");
    assertThatThrownBy(() -> spark.sql("SELECT nvfp4_amax(data0) FROM tensors"))
        .isInstanceOf(AnalysisException.class)
        .hasMessageContaining("nvfp4_amax");
  }

  /** A literal is wrong of every row: no task is asked, and the message is a line that has the place in the query. */
  @ParameterizedTest
  @CsvSource(delimiter = '|', textBlock = """
      nvfp4_quantize(data0, 'BF17', cols)           | Invalid dtype: BF17, must be BF16, F16 or F32
      nvfp4_quantize(data0, dtype, 24)              | Invalid cols: 24, must be a positive multiple of 16
      nvfp4_quantize(data0, dtype, cols, 'best')    | Invalid search: best, must be rtn, four-over-six or sweep
      nvfp4_quantize(data0, dtype, cols, dtype)     | Invalid search: tensors.dtype, must be a string literal
      nvfp4_quantize(data0, dtype, 16.5)            | Invalid argument of nvfp4_quantize: 16.5BD is DECIMAL(3,1), must
      nvfp4_error(data0, 'U8', cols)                | Invalid dtype: U8, must be BF16, F16 or F32
      nvfp4_error(data0, dtype, -16)                | Invalid cols: -16, must be a positive multiple of 16
      nvfp4_amax(data0, 'U8')                       | Invalid dtype: U8, must be BF16, F16 or F32
      nvfp4_dequantize(data0, data0, 1.0, 'gguf')   | Invalid recipe: gguf, must be modelopt or compressed-tensors
      tensor_stats(data0, 'U8')                     | Invalid dtype: U8, must be BF16, F16 or F32
      tensor_values(data0, 'U8')                    | Invalid dtype: U8, must be BF16, F16, F32, F8_E4M3 or F8_E8M0
      mxfp4_quantize(data0, dtype, 16)              | Invalid cols: 16, must be a positive multiple of 32 below 2^31
      mxfp4_error(data0, dtype, cols, 'up')         | Invalid scale rule: up, must be one of ceil, floor, even
      mxfp4_q_quant(data0, dtype, data0, 'U8', 1.0, 1, 1)  | Invalid weights_dtype: U8, must be BF16, F16 or F32
      mxfp4_q_quant(data0, dtype, data0, 'F32', 1.0, 0, 1) | Invalid num_heads: 0, must be positive
      """)
  void aWrongLiteralIsAnAnalysisError(String call, String message) {
    assertThatThrownBy(() -> spark.sql("SELECT " + call + " FROM tensors"))
        .isInstanceOf(AnalysisException.class)
        .hasMessageStartingWith(message)
        .hasMessageEndingWith("; line 1 pos 7")
        .satisfies(error -> assertThat(error.getMessage()).hasLineCount(1))
        .satisfies(error -> assertThat(conditionOf((AnalysisException) error))
            .startsWith("[FAILED_FUNCTION_CALL] ").contains(call.substring(0, call.indexOf('('))));
  }

  /** As PySpark makes its own exception of one, which fails where there is none. */
  private static String conditionOf(AnalysisException error) {
    return SparkThrowableHelper.getMessage(error.getCondition(), error.getMessageParameters());
  }

  @Test
  void theTierIsTheSessions() {
    spark.conf().set(KernelChoice.TIER_KEY, "sse9");
    Throwable error =
        catchThrowable(() -> spark.sql("SELECT nvfp4_amax(data0, dtype) FROM tensors").collectAsList());
    assertThat(Queries.chain(error)).filteredOn(IllegalArgumentException.class::isInstance)
        .anySatisfy(cause -> assertThat(cause.getMessage()).contains("sse9"));
  }

  @Test
  void functionsDescribeThemselves() {
    assertThat(describe("nvfp4_quantize"))
        .contains("nvfp4_quantize(payload, dtype, cols)")
        .contains("cols - BIGINT: elements a row, a multiple of 16")
        .contains("SELECT name, nvfp4_quantize(payload, dtype, cols) AS q FROM tensors;")
        .contains("global_scale is amax / 2688");
    assertThat(describe("nvfp4_amax")).contains("nvfp4_amax(payload, dtype)").contains("largest absolute value");
  }

  private String describe(String function) {
    return spark.sql("DESCRIBE FUNCTION EXTENDED " + function).collectAsList().stream()
        .map(row -> row.getString(0))
        .collect(Collectors.joining("\n"));
  }

  private static WeightRow single(int unit) {
    WeightRow row = UnitPartition.unit(unit);
    return new WeightRow(new byte[][] {row.members()[0], null, null}, row.dtype(), row.cols(), null);
  }
}
