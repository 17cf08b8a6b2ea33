package org.sparkfp4.columnar;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.SparkPlan;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A rewrite that another Spark cannot break: where a class or method that it was built for is gone, the plan stays as
 * it is. That is slower, never wrong.
 */
final class GuardedRule extends Rule<SparkPlan> {
  private static final Logger LOG = LoggerFactory.getLogger(GuardedRule.class);

  private final UnaryOperator<SparkPlan> rewrite;
  private final AtomicBoolean broken = new AtomicBoolean();

  GuardedRule(UnaryOperator<SparkPlan> rewrite) {
    this.rewrite = rewrite;
  }

  @Override
  public SparkPlan apply(SparkPlan plan) {
    if (broken.get()) {
      return plan;
    }

    try {
      return rewrite.apply(plan);
    } catch (LinkageError e) {
      if (!broken.getAndSet(true)) {
        LOG.warn("Cannot run functions on columns with this version of Spark, they run row by row", e);
      }

      return plan;
    }
  }
}
