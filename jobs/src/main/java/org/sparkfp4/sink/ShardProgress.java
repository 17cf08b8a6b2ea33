package org.sparkfp4.sink;

import java.time.Duration;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.plan.OutputShard;

/** Says, as shards finish, how far the run is, how fast, and how long it will take. */
final class ShardProgress {
  private static final Logger LOG = LoggerFactory.getLogger(ShardProgress.class);

  private final long begin = System.nanoTime();
  private final int shards;
  private final long bytes;
  private int shardsDone;
  private long bytesDone;

  /** A run that writes {@code shards} shards from {@code bytes} bytes of source. */
  ShardProgress(int shards, long bytes) {
    this.shards = shards;
    this.bytes = bytes;
  }

  /** Bytes of source that a shard is made from. */
  static long sourceBytes(OutputShard shard) {
    return shard.items().stream()
        .flatMap(item -> item.sources().stream())
        .mapToLong(LocatedTensor::length)
        .sum();
  }

  void finished(OutputShard shard) {
    shardsDone++;
    bytesDone += sourceBytes(shard);
    double seconds = (System.nanoTime() - begin) / 1e9;
    double rate = bytesDone / seconds;
    Duration left = Duration.ofSeconds(Math.round((bytes - bytesDone) / rate));
    LOG.info(
        "{}: {} of {} shards, {} GB/s of source{}",
        shard.file(), shardsDone, shards, String.format("%.2f", rate / 1e9),
        shardsDone < shards ? ", about " + left.toString().substring(2).toLowerCase() + " left" : "");
  }
}
