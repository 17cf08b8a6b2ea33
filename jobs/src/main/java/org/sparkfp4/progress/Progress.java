package org.sparkfp4.progress;

import java.time.Duration;
import java.util.Locale;

/**
 * How far a run is.
 *
 * @param work what it goes through
 * @param items how many things it is to finish
 * @param itemsDone those that are finished
 * @param bytes bytes of all of them
 * @param bytesDone those of the finished ones
 * @param elapsed since it began
 */
public record Progress(Work work, int items, int itemsDone, long bytes, long bytesDone, Duration elapsed) {
  /** Bytes a second; 0 before the first item is finished. */
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
    return itemsDone == items;
  }

  /** For people: {@code 12 of 66 shards, 18 %, 2.10 GB/s of source, 1m20s left}. */
  public String text() {
    String done = itemsDone + " of " + items + " " + work.item() + (items == 1 ? ", " : "s, ") + percent() + " %";
    if (rate() == 0) {
      return done;
    }

    String speed = done + ", " + speed() + " of " + work.bytes();
    return isComplete() ? speed : speed + ", " + text(left()) + " left";
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
