package org.sparkfp4.metrics;

import org.apache.spark.sql.connector.metric.CustomTaskMetric;

/** What a task has counted so far for the metric of that name. */
public record TaskCount(String name, long value) implements CustomTaskMetric {}
