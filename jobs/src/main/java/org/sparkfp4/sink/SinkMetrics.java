package org.sparkfp4.sink;

import java.util.List;
import org.apache.spark.sql.connector.metric.CustomMetric;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.sparkfp4.metrics.ByteCountMetric;
import org.sparkfp4.metrics.CountMetric;
import org.sparkfp4.metrics.ProcessCounter;
import org.sparkfp4.metrics.TaskCount;
import org.sparkfp4.output.LayerError;

/** What the writer of a shard has counted so far. */
final class SinkMetrics {
  // Spark shows this one as the task's output too
  private static final String BYTES = "bytesWritten";
  private static final String UNITS = "units";
  private static final String ZERO_UNITS = "zeroUnits";
  private static final String SATURATED = "saturatedCodes";
  private static final String SUBNORMAL = "subnormalScales";
  private static final String REQUANTIZED = "requantizedBlocks";

  private long units;
  private long zeroUnits;
  private long saturated;
  private long subnormal;
  private long requantized;

  /** What Spark shows of a write. */
  static CustomMetric[] all() {
    return new CustomMetric[] {
      new Bytes(), new Units(), new ZeroUnits(), new SaturatedCodes(), new SubnormalScales(), new RequantizedBlocks()
    };
  }

  void addSlab(EncodedSlab slab) {
    long largest = CodeCounts.saturated(slab.packed());
    long small = CodeCounts.subnormal(slab.scales());
    saturated += largest;
    subnormal += small;
    ProcessCounter.SINK_SATURATED_CODES.add(largest);
    ProcessCounter.SINK_SUBNORMAL_SCALES.add(small);
  }

  /** Adds a unit by what is said of its members. */
  void addUnit(List<LayerError> members) {
    long zero = members.get(0).amax() == 0 ? 1 : 0;
    long anew = members.stream().mapToLong(LayerError::requantized).sum();
    units++;
    zeroUnits += zero;
    requantized += anew;
    ProcessCounter.SINK_UNITS.add(1);
    ProcessCounter.SINK_ZERO_UNITS.add(zero);
    ProcessCounter.SINK_REQUANTIZED_BLOCKS.add(anew);
  }

  /** {@code bytes} is the shard's length so far. */
  CustomTaskMetric[] values(long bytes) {
    return new CustomTaskMetric[] {
      new TaskCount(BYTES, bytes),
      new TaskCount(UNITS, units),
      new TaskCount(ZERO_UNITS, zeroUnits),
      new TaskCount(SATURATED, saturated),
      new TaskCount(SUBNORMAL, subnormal),
      new TaskCount(REQUANTIZED, requantized)
    };
  }

  /** Made by Spark from its class's name, as those below. */
  public static final class Bytes extends ByteCountMetric {
    public Bytes() {
      super(BYTES, "size of shards written");
    }
  }

  public static final class Units extends CountMetric {
    public Units() {
      super(UNITS, "number of units");
    }
  }

  public static final class ZeroUnits extends CountMetric {
    public ZeroUnits() {
      super(ZERO_UNITS, "number of units of zeros");
    }
  }

  public static final class SaturatedCodes extends CountMetric {
    public SaturatedCodes() {
      super(SATURATED, "number of codes of magnitude 6");
    }
  }

  public static final class SubnormalScales extends CountMetric {
    public SubnormalScales() {
      super(SUBNORMAL, "number of subnormal block scales");
    }
  }

  public static final class RequantizedBlocks extends CountMetric {
    public RequantizedBlocks() {
      super(REQUANTIZED, "number of blocks that no exact cast could hold");
    }
  }
}
