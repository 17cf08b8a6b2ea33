package org.sparkfp4.columnar;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.functions.Nvfp4Quantize;
import org.sparkfp4.functions.QuantizedRow;
import scala.collection.immutable.Seq;

/** The queries of the tests: as the jobs' queries are, over the test's source and sink. */
final class Queries {
  static final int UNITS = 10;

  private Queries() {}

  static Dataset<Row> units(SparkSession spark) {
    return units(spark, Map.of());
  }

  static Dataset<Row> units(SparkSession spark, Map<String, String> options) {
    return spark.read().format(UnitSource.class.getName()).option("units", UNITS).options(options).load();
  }

  static void registerQuantize(SparkSession spark) {
    Nvfp4Quantize function = new Nvfp4Quantize(Nvfp4Recipe.MODELOPT, ScaleSearch.RTN, "auto");
    spark.udf().register("q", function, Nvfp4Quantize.RETURN_TYPE);
  }

  /** (unit, slab, q). */
  static Dataset<Row> quantized(SparkSession spark, Dataset<Row> units) {
    registerQuantize(spark);
    return units.selectExpr("unit", "slab", "q(data0, data1, data2, null, null, null, dtype, cols, amax, null) AS q");
  }

  static void write(Dataset<Row> quantized, String run) {
    quantized.write().format(UnitSink.class.getName()).option("run", run).mode("append").save();
  }

  /** unit -> value, by a collect. */
  static Map<Integer, QuantizedRow> collected(Dataset<Row> quantized) {
    Map<Integer, QuantizedRow> values = new TreeMap<>();
    for (Row row : quantized.collectAsList()) {
      values.put(row.getInt(0), QuantizedRow.of(row.<Row>getAs("q")));
    }

    return values;
  }

  /** unit -> value, as a sink was given them. */
  static Map<Integer, QuantizedRow> written(String run) {
    Map<Integer, QuantizedRow> values = new TreeMap<>();
    UnitSink.run(run).forEach(row -> values.put(row.unit(), row.value()));
    return values;
  }

  /** unit -> value, by the reference alone. */
  static Map<Integer, QuantizedRow> reference(int units) {
    Map<Integer, QuantizedRow> values = new TreeMap<>();
    IntStream.range(0, units)
        .forEach(unit -> values.put(unit, UnitPartition.unit(unit).reference(Nvfp4Recipe.MODELOPT)));
    return values;
  }

  @SuppressWarnings("unchecked")
  static Seq<NamedExpression> projectList(ArrowProjectExec project) {
    return (Seq<NamedExpression>) project.productElement(0);
  }

  /** An error and its causes, outermost first. */
  static List<Throwable> chain(Throwable error) {
    return Stream.iterate(error, e -> e != null, Throwable::getCause).toList();
  }
}
