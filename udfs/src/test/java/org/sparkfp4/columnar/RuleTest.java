package org.sparkfp4.columnar;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.junit.jupiter.api.Test;

class RuleTest {
  private static final String PLUGINS = "spark.plugins";

  private final SparkSession spark = TestSpark.extended();
  private final SQLConf conf = new SQLConf();

  @Test
  void anotherSparkLeavesThePlanAsItIs() {
    AtomicInteger calls = new AtomicInteger();
    GuardedRule rule = new GuardedRule(plan -> {
      calls.incrementAndGet();
      throw new NoSuchMethodError("ProjectExec.projectList");
    });
    SparkPlan plan = Queries.units(spark).queryExecution().executedPlan();
    assertThat(rule.apply(plan)).isSameAs(plan);
    assertThat(rule.apply(plan)).isSameAs(plan);
    assertThat(calls).as("not tried again").hasValue(1);
  }

  @Test
  void anErrorOfItsOwnIsNotHidden() {
    GuardedRule rule = new GuardedRule(plan -> {
      throw new IllegalStateException("broken");
    });
    SparkPlan plan = Queries.units(spark).queryExecution().executedPlan();
    assertThatThrownBy(() -> rule.apply(plan)).isInstanceOf(IllegalStateException.class).hasMessage("broken");
  }

  @Test
  void autoRunsOnColumns() {
    assertThat(new ColumnarMode(new SparkConf(false), SparkVersion.current()).reasonAgainst(conf)).isEmpty();
    assertThat(new ColumnarMode(new SparkConf(false), SparkVersion.current()).enabled(conf)).isTrue();
  }

  @Test
  void offDoesNot() {
    conf.setConfString(ColumnarMode.CONF, "off");
    assertThat(new ColumnarMode(new SparkConf(false), SparkVersion.current()).reasonAgainst(conf))
        .hasValue("spark.fp4.columnar is off");
    assertThat(new ColumnarMode(new SparkConf(false), SparkVersion.current()).enabled(conf)).isFalse();
  }

  @Test
  void theRapidsPluginGoesFirst() {
    SparkConf with = new SparkConf(false).set(PLUGINS, "org.example.Other, com.nvidia.spark.SQLPlugin");
    assertThat(new ColumnarMode(with, SparkVersion.current()).reasonAgainst(conf)).hasValueSatisfying(
        reason -> assertThat(reason).contains("RAPIDS Accelerator (com.nvidia.spark.SQLPlugin) is active"));
    SparkConf other = new SparkConf(false).set(PLUGINS, "org.example.Other");
    assertThat(new ColumnarMode(other, SparkVersion.current()).reasonAgainst(conf)).isEmpty();
    conf.setConfString("spark.rapids.sql.enabled", "false");
    assertThat(new ColumnarMode(with, SparkVersion.current()).reasonAgainst(conf)).as("plugin switched off").isEmpty();
  }

  @Test
  void anythingElseIsRefusedWhereAFunctionIsUsed() {
    spark.conf().set(ColumnarMode.CONF, "on");
    long rows = Queries.units(spark).selectExpr("unit").count();
    assertThat(rows).as("a query without functions").isEqualTo(Queries.UNITS);
    assertThatThrownBy(() -> Queries.quantized(spark, Queries.units(spark)).queryExecution().executedPlan())
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid spark.fp4.columnar: on, must be auto or off");
  }
}
