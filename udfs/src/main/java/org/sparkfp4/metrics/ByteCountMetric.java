package org.sparkfp4.metrics;

import org.apache.spark.util.Utils;

/** Bytes of all tasks together, as Spark writes sizes: {@code 1.5 GiB}. */
public abstract class ByteCountMetric extends CountMetric {
  protected ByteCountMetric(String name, String description) {
    super(name, description);
  }

  @Override
  protected final String text(long sum) {
    return Utils.bytesToString(sum);
  }
}
