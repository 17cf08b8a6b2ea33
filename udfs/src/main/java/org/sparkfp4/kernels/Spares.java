package org.sparkfp4.kernels;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Iterator;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * What is dear to make, between its users: the next one takes it over, the latest given first. All are closed once none
 * was given back for some time.
 */
final class Spares<T extends AutoCloseable> {
  private final long keptNanos;
  private final Deque<T> spares = new ArrayDeque<>();
  private long lastUse;
  private boolean isCloseDue;

  Spares(Duration kept) {
    this.keptNanos = kept.toNanos();
  }

  /** One that fits; null where there is none. */
  synchronized T take(Predicate<T> fits) {
    for (Iterator<T> all = spares.iterator(); all.hasNext(); ) {
      T spare = all.next();
      if (fits.test(spare)) {
        all.remove();
        return spare;
      }
    }

    return null;
  }

  synchronized void give(T spare) {
    spares.push(spare);
    lastUse = System.nanoTime();
    if (!isCloseDue) {
      isCloseDue = true;
      closeLater();
    }
  }

  /** Closes all of them now. */
  synchronized void closeAll() {
    for (T spare = spares.poll(); spare != null; spare = spares.poll()) {
      try {
        spare.close();
      } catch (Exception e) {
        throw new IllegalStateException("Cannot close " + spare, e);
      }
    }
  }

  private void closeLater() {
    CompletableFuture.delayedExecutor(keptNanos, TimeUnit.NANOSECONDS).execute(this::closeUnused);
  }

  private synchronized void closeUnused() {
    if (System.nanoTime() - lastUse < keptNanos) {
      closeLater();
    } else {
      isCloseDue = false;
      closeAll();
    }
  }
}
