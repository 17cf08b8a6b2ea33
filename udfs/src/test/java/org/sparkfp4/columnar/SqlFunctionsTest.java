package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.AnalysisException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
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
