package org.sparkfp4.progress;

import java.time.Duration;
import java.util.Locale;

/**
 * How far a run is.
 *
 * @param work what it goes through
 * @param items how many things it is to finish
 * @param itemsDone those that are finished
 * @param bytes bytes of all of them; 0 where nobody knows, and items count alike
 * @param bytesDone those of the finished ones, and what is known to be done of others
 * @param elapsed since it began
 */
public record Progress(Work work, int items, int itemsDone, long bytes, long bytesDone, Duration elapsed) {
  /** Bytes a second; 0 before the first are done. */
  public double rate() {
    return bytesDone == 0 ? 0 : bytesDone / Math.max(1e-9, elapsed.toNanos() / 1e9);
  }

  /** How long the rest takes if it is as fast; null before anything is done. */
  public Duration left() {
    return done() == 0 ? null : Duration.ofSeconds(Math.round(elapsed.toNanos() / 1e9 * (all() - done()) / done()));
  }

  /** The share that is done, in whole per cent. */
  public int percent() {
    return (int) (100.0 * done() / all());
  }

  private long all() {
    return bytes == 0 ? items : bytes;
  }

  private long done() {
    return bytes == 0 ? itemsDone : bytesDone;
  }

  public boolean isComplete() {
    return itemsDone == items;
  }

  /** For people: {@code 12 of 66 shards, 18 %, 2.10 GB/s of source, 1m20s left}, where there are bytes. */
  public String text() {
    String done = itemsDone + " of " + items + " " + work.item() + (items == 1 ? ", " : "s, ") + percent() + " %";
    String speed = rate() == 0 ? done : done + ", " + speed() + " of " + work.bytes();
    return isComplete() || left() == null ? speed : speed + ", " + text(left()) + " left";
  }

  /** With digits that tell slow runs apart too. */
  private String speed() {
    return rate() < 1e8
        ? String.format(Locale.ROOT, "%.1f MB/s", rate() / 1e6)
        : String.format(Locale.ROOT, "%.2f GB/s", rate() / 1e9);
  }

  private static String text(Duration time) {
    return time.toString().substring(2).toLowerCase(Locale.ROOT);
  }
}
