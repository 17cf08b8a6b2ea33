package org.sparkfp4.sink;

import java.time.Duration;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.metrics.ProcessCounter;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.progress.Progress;
import org.sparkfp4.progress.ProgressView;

/** Counts the shards of a write as they finish, and shows it. */
final class ShardProgress implements AutoCloseable {
  private final long begin = System.nanoTime();
  private final ProgressView view;
  private final int shards;
  private final long bytes;
  private int shardsDone;
  private long bytesDone;

  /** A write of {@code shards}. */
  ShardProgress(List<OutputShard> shards, ProgressView view) {
    this.view = view;
    this.shards = shards.size();
    this.bytes = shards.stream().mapToLong(ShardProgress::sourceBytes).sum();
  }

  private static long sourceBytes(OutputShard shard) {
    return shard.items().stream()
        .flatMap(item -> item.sources().stream())
        .mapToLong(LocatedTensor::length)
        .sum();
  }

  void begin() {
    ProcessCounter.RUN_SHARDS_PLANNED.add(shards);
    show();
  }

  void finished(OutputShard shard) {
    shardsDone++;
    bytesDone += sourceBytes(shard);
    ProcessCounter.RUN_SHARDS_FINISHED.add(1);
    show();
  }

  private void show() {
    view.show(new Progress(shards, shardsDone, bytes, bytesDone, Duration.ofNanos(System.nanoTime() - begin)));
  }

  @Override
  public void close() {
    view.close();
  }
}
