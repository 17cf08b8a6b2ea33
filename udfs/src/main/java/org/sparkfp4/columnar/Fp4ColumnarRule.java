package org.sparkfp4.columnar;

import org.apache.spark.SparkConf;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.ColumnarRule;
import org.apache.spark.sql.execution.SparkPlan;

/** Before Spark inserts its transitions: projections onto columns. After it: rows for a writer, without a copy. */
final class Fp4ColumnarRule extends ColumnarRule {
  private final Rule<SparkPlan> projections;
  private final Rule<SparkPlan> writes;

  Fp4ColumnarRule(SparkConf sparkConf, SparkVersion version) {
    this.projections = new GuardedRule(new ArrowProjectRewrite(new ColumnarMode(sparkConf, version)));
    this.writes = new GuardedRule(new ArrowRowsRewrite());
  }

  @Override
  public Rule<SparkPlan> preColumnarTransitions() {
    return projections;
  }

  @Override
  public Rule<SparkPlan> postColumnarTransitions() {
    return writes;
  }
}
