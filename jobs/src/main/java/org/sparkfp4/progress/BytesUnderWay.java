package org.sparkfp4.progress;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.AccumulableInfo;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorMetricsUpdate;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.scheduler.SparkListenerTaskStart;
import org.apache.spark.util.LongAccumulator;
import scala.Tuple4;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * What tasks have done of the items that they are at, the item of a task being its partition. It comes with the
 * executors' heartbeats, so that a run of few long tasks is seen to go on.
 */
public final class BytesUnderWay implements AutoCloseable {
  private final SparkContext context;
  private final LongAccumulator bytes;
  private final Heartbeats heartbeats;

  /** Tells {@code progress} what is under way until it is closed. */
  public BytesUnderWay(SparkContext context, RunProgress progress) {
    this.context = context;
    this.bytes = context.longAccumulator();
    this.heartbeats = new Heartbeats(bytes.id(), progress);
    context.addSparkListener(heartbeats);
  }

  /** What a task adds bytes to as it gets through them; travels to it. */
  public LongAccumulator bytes() {
    return bytes;
  }

  @Override
  public void close() {
    context.removeSparkListener(heartbeats);
  }

  private static final class Heartbeats extends SparkListener {
    private final long accumulator;
    private final RunProgress progress;
    private final Map<Long, Integer> partitions = new ConcurrentHashMap<>();

    Heartbeats(long accumulator, RunProgress progress) {
      this.accumulator = accumulator;
      this.progress = progress;
    }

    @Override
    public void onTaskStart(SparkListenerTaskStart start) {
      partitions.put(start.taskInfo().taskId(), start.taskInfo().partitionId());
    }

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      partitions.remove(end.taskInfo().taskId());
    }

    @Override
    public void onExecutorMetricsUpdate(SparkListenerExecutorMetricsUpdate heartbeat) {
      Map<Integer, Long> underWay = new HashMap<>();
      for (Tuple4<Object, Object, Object, Seq<AccumulableInfo>> task
          : CollectionConverters.asJava(heartbeat.accumUpdates())) {
        Integer partition = partitions.get((long) task._1());
        for (AccumulableInfo update : CollectionConverters.asJava(task._4())) {
          if (partition != null && update.id() == accumulator && update.update().isDefined()) {
            underWay.put(partition, (long) update.update().get());
          }
        }
      }

      if (!underWay.isEmpty()) {
        progress.underWay(underWay);
      }
    }
  }
}
