package org.sparkfp4.sink;

import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.metrics.ProcessCounter;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.progress.RunProgress;
import org.sparkfp4.progress.Work;

/** Counts the shards of a write as they finish, and shows it; the metrics system gets them too. */
final class ShardProgress implements AutoCloseable {
  private final RunProgress progress;
  private final int shards;

  /** A write of {@code shards}. */
  ShardProgress(List<OutputShard> shards, ProgressView view) {
    this.shards = shards.size();
    this.progress = new RunProgress(
        view, Work.SHARDS, this.shards, shards.stream().mapToLong(ShardProgress::sourceBytes).sum());
  }

  private static long sourceBytes(OutputShard shard) {
    return shard.items().stream()
        .flatMap(item -> item.sources().stream())
        .mapToLong(LocatedTensor::length)
        .sum();
  }

  void begin() {
    ProcessCounter.RUN_SHARDS_PLANNED.add(shards);
    progress.show();
  }

  void finished(OutputShard shard) {
    ProcessCounter.RUN_SHARDS_FINISHED.add(1);
    progress.finished(sourceBytes(shard));
  }

  @Override
  public void close() {
    progress.close();
  }
}
