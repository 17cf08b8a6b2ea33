package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.util.ArrowUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.functions.QuantizedRow;

/** However a query is run, it gives the reference's bytes. */
class ColumnarBytesTest {
  private final SparkSession spark = TestSpark.extended();
  private final long memoryBefore = ArrowUtils.rootAllocator().getAllocatedMemory();

  @AfterEach
  void noTaskLeavesMemory() {
    assertThat(ArrowUtils.rootAllocator().getAllocatedMemory()).isEqualTo(memoryBefore);
  }

  @ParameterizedTest
  @CsvSource({"1,false", "4,false", "1,true", "100,true"})
  void columnsAndRowsGiveTheReferencesBytes(int rowsABatch, boolean forceAdaptive) {
    Map<Integer, QuantizedRow> expected = Queries.reference(Queries.UNITS);
    Map<String, String> options = Map.of("rows", "" + rowsABatch);
    spark.conf().set("spark.sql.adaptive.forceApply", forceAdaptive);
    assertThat(Queries.collected(Queries.quantized(spark, Queries.units(spark, options)))).isEqualTo(expected);

    String run = "bytes " + rowsABatch + forceAdaptive;
    Queries.write(Queries.quantized(spark, Queries.units(spark, options)), run);
    assertThat(Queries.written(run)).isEqualTo(expected);

    spark.conf().set(ColumnarMode.CONF, "off");
    Queries.write(Queries.quantized(spark, Queries.units(spark, options)), run + " off");
    assertThat(Queries.written(run + " off")).isEqualTo(expected);
    assertThat(UnitSink.run(run + " off")).noneMatch(UnitSink.Written::arrow);
  }

  @Test
  void aSessionWithoutTheExtensionsGivesTheSame() {
    SparkSession plain = TestSpark.plain();
    Dataset<Row> query = Queries.quantized(plain, Queries.units(plain));
    assertThat(query.queryExecution().executedPlan().toString()).doesNotContain("ArrowProject");
    assertThat(Queries.collected(query)).isEqualTo(Queries.reference(Queries.UNITS));
  }

  @Test
  void withAdaptiveExecutionOffTheWriteIsTheSame() {
    spark.conf().set("spark.sql.adaptive.enabled", false);
    Queries.write(Queries.quantized(spark, Queries.units(spark)), "not adaptive");
    assertThat(Queries.written("not adaptive")).isEqualTo(Queries.reference(Queries.UNITS));
    assertThat(UnitSink.run("not adaptive")).allMatch(UnitSink.Written::arrow);
  }

  @Test
  void columnsBelowAnExchangeGiveTheSame() {
    Dataset<Row> query = Queries.quantized(spark, Queries.units(spark, Map.of("rows", "3"))).orderBy("unit");
    assertThat(Queries.collected(query)).isEqualTo(Queries.reference(Queries.UNITS));
  }

  @Test
  void literalsAreArgumentsAndColumns() {
    Queries.registerQuantize(spark);
    Dataset<Row> query = Queries.units(spark, Map.of("rows", "2", "step", "3"))
        .selectExpr(
            "unit", "'x' AS mark", "q(data0, null, null, null, null, null, 'BF16', 16L, 0.5f, null) AS q",
            "null AS nothing", "2.5D AS d");
    assertThat(query.queryExecution().executedPlan().toString()).contains("ArrowProject");
    for (Row row : query.collectAsList()) {
      assertThat(row.getString(1)).isEqualTo("x");
      assertThat(row.isNullAt(3)).isTrue();
      assertThat(row.getDouble(4)).isEqualTo(2.5);
      byte[] data = UnitPartition.unit(row.getInt(0)).members()[0];
      assertThat(row.isNullAt(2)).isEqualTo(data == null);
      if (data != null) {
        assertThat(row.getStruct(2).<byte[]>getAs("packed")).hasSize(data.length / 4);
        assertThat(row.getStruct(2).getFloat(2)).isEqualTo(0.5f);
      }
    }
  }

  @Test
  void aProjectionOfMoreThanTheWritersColumnsHandsThemOn() {
    Queries.registerQuantize(spark);
    Dataset<Row> query = Queries.units(spark, Map.of("rows", "4"))
        .selectExpr("unit", "name", "data0", "name AS again",
            "q(data0, data1, data2, null, null, null, dtype, cols, amax, null) AS q");
    Map<Integer, QuantizedRow> values = new TreeMap<>();
    for (Row row : query.collectAsList()) {
      assertThat(row.getString(1)).isEqualTo("experts." + row.getInt(0));
      assertThat(row.getString(3)).isEqualTo(row.getString(1));
      assertThat(row.<byte[]>getAs(2)).isEqualTo(UnitPartition.unit(row.getInt(0)).members()[0]);
      values.put(row.getInt(0), QuantizedRow.of(row.<Row>getAs("q")));
    }

    assertThat(values).isEqualTo(Queries.reference(Queries.UNITS));
  }

  @Test
  void columnsThatAreNotArrowsAreReadToo(@TempDir Path folder) {
    String file = folder.resolve("units.parquet").toString();
    Queries.units(spark).write().parquet(file);
    Dataset<Row> query = Queries.quantized(spark, spark.read().parquet(file));
    assertThat(query.queryExecution().executedPlan().toString()).contains("ArrowProject");
    assertThat(Queries.collected(query)).isEqualTo(Queries.reference(Queries.UNITS));
  }

  @Test
  void batchesOfATaskAreWrittenToTheSameMemory() {
    // Every 60th unit has the same shape. A result still held while the next is made would give two addresses.
    Map<String, String> options = Map.of("partitions", "1", "units", "6", "step", "60");
    Queries.write(Queries.quantized(spark, Queries.units(spark, options)), "reuse");
    assertThat(UnitSink.run("reuse").stream().filter(row -> row.value() != null).map(UnitSink.Written::packedAddress))
        .hasSizeGreaterThan(3)
        .doesNotContain(0L)
        .containsOnly(UnitSink.run("reuse").element().packedAddress());
  }

  @ParameterizedTest
  @ValueSource(strings = {"auto", "off"})
  void aWeightThatIsNotFiniteFailsTheQueryByName(String mode) {
    spark.conf().set(ColumnarMode.CONF, mode);
    // One task: another would still run, and hold its memory, when the query has failed.
    Dataset<Row> query = Queries.quantized(spark, Queries.units(spark, Map.of("nan", "6", "partitions", "1")));
    Throwable error = catchThrowable(() -> Queries.write(query, "nan"));
    assertThat(Queries.chain(error)).filteredOn(NonFiniteException.class::isInstance).singleElement()
        .satisfies(cause -> assertThat(cause.getMessage()).contains("NaN at element 5 of segment 0"));
    if (mode.equals("auto")) {
      assertThat(Queries.chain(error)).filteredOn(FunctionException.class::isInstance).singleElement()
          .satisfies(cause -> assertThat(cause.getMessage())
              .contains("Cannot evaluate q on a batch of 1 rows, [unit=6, slab=0")
              .contains("NaN at element 5 of segment 0"));
    }
  }
}
