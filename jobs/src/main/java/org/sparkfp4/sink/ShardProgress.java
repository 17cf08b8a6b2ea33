package org.sparkfp4.sink;

import java.util.List;
import org.apache.spark.SparkContext;
import org.apache.spark.util.LongAccumulator;
import org.sparkfp4.metrics.ProcessCounter;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.progress.BytesUnderWay;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.progress.RunProgress;
import org.sparkfp4.progress.Work;

/** Counts the shards of a write as they finish, and shows it; the metrics system gets them too. */
final class ShardProgress implements AutoCloseable {
  private final RunProgress progress;
  private final List<OutputShard> shards;
  private BytesUnderWay underWay;

  /** A write of {@code shards}, each in the partition of its place in the list. */
  ShardProgress(List<OutputShard> shards, ProgressView view) {
    this.shards = shards;
    this.progress = new RunProgress(
        view, Work.SHARDS, shards.size(), shards.stream().mapToLong(OutputShard::sourceBytes).sum());
  }

  /** Shows that nothing is finished yet, and gives what tasks add the source's bytes to as they get through them. */
  LongAccumulator begin(SparkContext context) {
    ProcessCounter.RUN_SHARDS_PLANNED.add(shards.size());
    progress.show();
    underWay = new BytesUnderWay(context, progress);
    return underWay.bytes();
  }

  void finished(int partition) {
    ProcessCounter.RUN_SHARDS_FINISHED.add(1);
    progress.finished(partition, shards.get(partition).sourceBytes());
  }

  @Override
  public void close() {
    if (underWay != null) {
      underWay.close();
    }

    progress.close();
  }
}
