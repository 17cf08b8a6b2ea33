package org.sparkfp4.progress;

import java.time.Duration;
import java.util.Locale;

/**
 * How far a run is.
 *
 * @param shards shards that it writes
 * @param shardsDone those that are finished
 * @param bytes bytes of source that they are made from
 * @param bytesDone those of the finished ones
 * @param elapsed since it began
 */
public record Progress(int shards, int shardsDone, long bytes, long bytesDone, Duration elapsed) {
  /** Bytes of source a second; 0 before the first shard is finished. */
  public double rate() {
    return bytesDone == 0 ? 0 : bytesDone / Math.max(1e-9, elapsed.toNanos() / 1e9);
  }

  /** How long the rest takes at that rate; null before there is one. */
  public Duration left() {
    return rate() == 0 ? null : Duration.ofSeconds(Math.round((bytes - bytesDone) / rate()));
  }

  /** The share of the bytes that is done, in whole per cent. */
  public int percent() {
    return bytes == 0 ? 100 : (int) (100.0 * bytesDone / bytes);
  }

  public boolean isComplete() {
    return shardsDone == shards;
  }

  /** For people: {@code 12 of 66 shards, 18 %, 2.10 GB/s of source, 1m20s left}. */
  public String text() {
    String done = shardsDone + " of " + shards + (shards == 1 ? " shard, " : " shards, ") + percent() + " %";
    if (rate() == 0) {
      return done;
    }

    String speed = String.format(Locale.ROOT, "%s, %.2f GB/s of source", done, rate() / 1e9);
    return isComplete() ? speed : speed + ", " + text(left()) + " left";
  }

  private static String text(Duration time) {
    return time.toString().substring(2).toLowerCase(Locale.ROOT);
  }
}
