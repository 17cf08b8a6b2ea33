package org.sparkfp4.progress;

import java.time.Duration;

/** Counts what a run finishes, and shows it. Used by one thread at a time. */
public final class RunProgress implements AutoCloseable {
  private final long begin = System.nanoTime();
  private final ProgressView view;
  private final Work work;
  private final int items;
  private final long bytes;
  private int itemsDone;
  private long bytesDone;

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
  public void show() {
    if (items > 0) {
      view.show(new Progress(work, items, itemsDone, bytes, bytesDone, Duration.ofNanos(System.nanoTime() - begin)));
    }
  }

  /** Counts an item of {@code itemBytes} bytes as finished. */
  public void finished(long itemBytes) {
    itemsDone++;
    bytesDone += itemBytes;
    show();
  }

  @Override
  public void close() {
    view.close();
  }
}
