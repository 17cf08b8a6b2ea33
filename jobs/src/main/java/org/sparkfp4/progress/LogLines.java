package org.sparkfp4.progress;

import java.time.Duration;
import org.slf4j.Logger;

/**
 * Lines of the log, at most one an interval and one at the end. Structured layouts have the figures as fields:
 * shards and shards_done, or another work's items, bytes, bytes_done, bytes_per_second, seconds_left.
 */
final class LogLines implements ProgressView {
  private final Logger log;
  private final Duration interval;
  private Duration last = Duration.ZERO;

  LogLines(Logger log, Duration interval) {
    this.log = log;
    this.interval = interval;
  }

  @Override
  public void show(Progress progress) {
    if (progress.isComplete() || progress.elapsed().minus(last).compareTo(interval) >= 0) {
      last = progress.elapsed();
      String items = progress.work().item() + "s";
      log.atInfo()
          .addKeyValue(items, progress.items())
          .addKeyValue(items + "_done", progress.itemsDone())
          .addKeyValue("bytes", progress.bytes())
          .addKeyValue("bytes_done", progress.bytesDone())
          .addKeyValue("bytes_per_second", Math.round(progress.rate()))
          .addKeyValue("seconds_left", progress.left() == null ? "" : progress.left().toSeconds())
          .log(progress.text());
    }
  }

  @Override
  public void close() {
    // the log is not ours
  }
}
