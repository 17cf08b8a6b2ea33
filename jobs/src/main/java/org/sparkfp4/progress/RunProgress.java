package org.sparkfp4.progress;

import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Counts what a run finishes, and shows it. */
public final class RunProgress implements AutoCloseable {
  private final long begin = System.nanoTime();
  private final ProgressView view;
  private final Work work;
  private final int items;
  private final long bytes;
  private final Set<Integer> finished = new HashSet<>();
  private final Map<Integer, Long> underWay = new HashMap<>();
  private int itemsDone;
  private long bytesDone;
  private boolean closed;

  /**
   * A run that begins now.
   *
   * @param view is closed with it
   * @param items that it is to finish
   * @param bytes of all of them
   */
  public RunProgress(ProgressView view, Work work, int items, long bytes) {
    this.view = view;
    this.work = work;
    this.items = items;
    this.bytes = bytes;
  }

  /** Shows how far the run is; nothing of one that has nothing to do. */
  public synchronized void show() {
    if (items > 0 && !closed) {
      long done = bytesDone + underWay.values().stream().mapToLong(Long::longValue).sum();
      view.show(new Progress(work, items, itemsDone, bytes, done, Duration.ofNanos(System.nanoTime() - begin)));
    }
  }

  /** Counts an item of {@code itemBytes} bytes as finished. */
  public synchronized void finished(long itemBytes) {
    itemsDone++;
    bytesDone += itemBytes;
    show();
  }

  /** The same of an item that may be under way. */
  public synchronized void finished(int item, long itemBytes) {
    finished.add(item);
    underWay.remove(item);
    finished(itemBytes);
  }

  /** Takes how many bytes are done of items that are not finished, by their numbers; of two that try one, the most. */
  synchronized void underWay(Map<Integer, Long> bytesOfItems) {
    bytesOfItems.forEach((item, done) -> underWay.merge(item, done, Math::max));
    underWay.keySet().removeAll(finished);
    show();
  }

  /** All is finished, whatever was counted. */
  synchronized void complete() {
    if (itemsDone < items) {
      itemsDone = items;
      bytesDone = bytes;
      underWay.clear();
      show();
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    view.close();
  }
}
