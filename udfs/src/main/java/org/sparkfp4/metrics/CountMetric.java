package org.sparkfp4.metrics;

import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;

/**
 * The sum of what all tasks counted under one name. Spark makes a metric from its class's name alone, so each has a
 * public subclass with a constructor without arguments.
 */
public abstract class CountMetric implements CustomMetric {
  private final String name;
  private final String description;

  /**
   * @param name of the {@link TaskCount}s
   * @param description on Spark's pages
   */
  protected CountMetric(String name, String description) {
    this.name = name;
    this.description = description;
  }

  @Override
  public final String name() {
    return name;
  }

  @Override
  public final String description() {
    return description;
  }

  @Override
  public final String aggregateTaskMetrics(long[] taskMetrics) {
    return text(Arrays.stream(taskMetrics).sum());
  }

  /** How the sum is written. */
  protected String text(long sum) {
    return Long.toString(sum);
  }
}
