package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.execution.ColumnarToRowExec;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.adaptive.AdaptiveSparkPlanExec;
import org.apache.spark.sql.execution.datasources.v2.AppendDataExec;
import org.apache.spark.sql.execution.datasources.v2.BatchScanExec;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.Test;

/**
 * The shapes of plans that speed depends on. Spark does not promise them: these tests fail when another version gives
 * other plans, where all results would still be right.
 */
class ColumnarPlanTest {
  private final SparkSession spark = TestSpark.extended();

  @Test
  void aProjectionOverTheSourceRunsOnColumns() {
    Dataset<Row> query = Queries.quantized(spark, Queries.units(spark));
    SparkPlan plan = query.queryExecution().executedPlan();
    SparkPlan project = find(plan, ArrowProjectExec.class);
    assertThat(project).as(plan.toString()).isNotNull();
    assertThat(project.children().head()).isInstanceOf(BatchScanExec.class);
    assertThat(plan.toString()).contains("ArrowProject [unit#").contains("q(data0#").doesNotContain(" Project ");
  }

  @Test
  void aWriterGetsRowsOverTheColumns() throws Exception {
    SparkPlan plan = writePlan("shape");
    SparkPlan write = find(plan, AppendDataExec.class);
    assertThat(write).as(plan.toString()).isNotNull();
    assertThat(write.children().head()).as(plan.toString()).isInstanceOf(ArrowRowsExec.class);
    SparkPlan project = write.children().head().children().head();
    assertThat(project).isInstanceOf(ArrowProjectExec.class);
    assertThat(project.children().head()).isInstanceOf(BatchScanExec.class);
    assertThat(UnitSink.run("shape")).hasSize(10).allMatch(UnitSink.Written::arrow);
  }

  @Test
  void metricsAreCounted() throws Exception {
    SparkPlan plan = writePlan("metrics");
    SparkPlan project = find(plan, ArrowProjectExec.class);
    assertThat(project.metrics().apply("numOutputRows").value()).isEqualTo(10);
    assertThat(project.metrics().apply("numOutputBatches").value()).isEqualTo(10);
    assertThat(project.metrics().apply("functionTime").value()).isPositive();
    assertThat(find(plan, ArrowRowsExec.class).metrics().apply("numOutputRows").value()).isEqualTo(10);
  }

  @Test
  void anOperatorBetweenTheWriteAndTheProjectionGetsOrdinaryRows() throws Exception {
    SparkPlan plan = LastPlan.of(spark, () -> Queries.write(
        Queries.quantized(spark, Queries.units(spark)).repartition(1), "between"));
    assertThat(find(plan, ArrowRowsExec.class)).as(plan.toString()).isNull();
    assertThat(UnitSink.run("between")).hasSize(10).noneMatch(UnitSink.Written::arrow);
  }

  @Test
  void projectionsWithoutAFunctionOfOursStayAsTheyAre() {
    spark.udf().register("size_of", (UDF1<byte[], Integer>) bytes -> bytes.length, DataTypes.IntegerType);
    assertRowByRow("unit", "name AS n");
    assertRowByRow("unit", "size_of(data0) AS size");
    assertRowByRow("unit + 1 AS next", "q(data0, data1, data2, null, null, null, dtype, cols, amax, null) AS q");
    assertRowByRow("q(data0, data1, data2, null, null, null, upper(dtype), cols, amax, null) AS q");
  }

  @Test
  void offMeansOff() {
    spark.conf().set(ColumnarMode.CONF, "off");
    SparkPlan plan = Queries.quantized(spark, Queries.units(spark)).queryExecution().executedPlan();
    assertThat(find(plan, ArrowProjectExec.class)).as(plan.toString()).isNull();
  }

  @Test
  void theSameProjectionsAreEqual() {
    ArrowProjectExec one = project(Queries.quantized(spark, Queries.units(spark)));
    ArrowProjectExec same = new ArrowProjectExec(Queries.projectList(one), one.children().head());
    assertThat(one).isEqualTo(same).hasSameHashCodeAs(same);
    assertThat(one.sameResult(same)).isTrue();
    assertThat(new ArrowRowsExec(one)).isEqualTo(new ArrowRowsExec(same)).isNotEqualTo(new ColumnarToRowExec(one));
  }

  private void assertRowByRow(String... expressions) {
    Queries.registerQuantize(spark);
    SparkPlan plan = Queries.units(spark).selectExpr(expressions).queryExecution().executedPlan();
    assertThat(find(plan, ArrowProjectExec.class)).as(plan.toString()).isNull();
  }

  private SparkPlan writePlan(String run) throws Exception {
    return LastPlan.of(spark, () -> Queries.write(Queries.quantized(spark, Queries.units(spark)), run));
  }

  private static ArrowProjectExec project(Dataset<Row> query) {
    return (ArrowProjectExec) find(query.queryExecution().executedPlan(), ArrowProjectExec.class);
  }

  /** The first node of that class, looking through what AQE wraps; null if there is none. */
  private static SparkPlan find(SparkPlan plan, Class<?> type) {
    if (type.isInstance(plan)) {
      return plan;
    }

    if (plan instanceof AdaptiveSparkPlanExec adaptive) {
      return find(adaptive.executedPlan(), type);
    }

    for (int i = 0; i < plan.children().size(); i++) {
      SparkPlan found = find(plan.children().apply(i), type);
      if (found != null) {
        return found;
      }
    }

    return null;
  }
}
