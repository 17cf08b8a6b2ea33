package org.sparkfp4.columnar;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.util.QueryExecutionListener;

/** The physical plan of a write, which only a listener gets to see. */
final class LastPlan implements QueryExecutionListener {
  private final CompletableFuture<SparkPlan> plan = new CompletableFuture<>();

  static SparkPlan of(SparkSession spark, Runnable write) throws Exception {
    LastPlan listener = new LastPlan();
    spark.listenerManager().register(listener);
    try {
      write.run();
      return listener.plan.get(30, TimeUnit.SECONDS);
    } finally {
      spark.listenerManager().unregister(listener);
    }
  }

  @Override
  public void onSuccess(String name, QueryExecution execution, long nanos) {
    plan.complete(execution.executedPlan());
  }

  @Override
  public void onFailure(String name, QueryExecution execution, Exception error) {
    plan.completeExceptionally(error);
  }
}
