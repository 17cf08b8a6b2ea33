package org.sparkfp4.source;

import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.sparkfp4.metrics.ByteCountMetric;
import org.sparkfp4.metrics.CountMetric;
import org.sparkfp4.metrics.ProcessCounter;
import org.sparkfp4.metrics.TaskCount;

/** What a partition's reader has given so far. */
final class SourceMetrics {
  private static final String BYTES = "sourceBytes";
  private static final String SLABS = "slabs";

  private long bytes;
  private long slabs;

  /** What Spark shows of a scan. */
  static CustomMetric[] all() {
    return new CustomMetric[] {new Bytes(), new Slabs()};
  }

  void addSlabs(int count) {
    slabs += count;
    ProcessCounter.SOURCE_SLABS.add(count);
  }

  void addBytes(long count) {
    bytes += count;
    ProcessCounter.SOURCE_BYTES.add(count);
  }

  CustomTaskMetric[] values() {
    return new CustomTaskMetric[] {new TaskCount(BYTES, bytes), new TaskCount(SLABS, slabs)};
  }

  /** Made by Spark from its class's name. */
  public static final class Bytes extends ByteCountMetric {
    public Bytes() {
      super(BYTES, "size of source tensors read");
    }
  }

  /** Made by Spark from its class's name. */
  public static final class Slabs extends CountMetric {
    public Slabs() {
      super(SLABS, "number of slabs");
    }
  }
}
