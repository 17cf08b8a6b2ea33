package org.sparkfp4.metrics;

import java.util.Arrays;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.util.Utils;

/** Bytes of all tasks together, as Spark writes sizes: {@code 1.5 GiB}. */
public abstract class ByteSumMetric implements CustomMetric {
  @Override
  public final String aggregateTaskMetrics(long[] taskMetrics) {
    return Utils.bytesToString(Arrays.stream(taskMetrics).sum());
  }
}
