package org.sparkfp4.output;

import java.io.FileNotFoundException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.files.RawFileSystem;

/**
 * Keeps a second run out of an output: a lease in a file, renewed while its holder lives.
 *
 * <p>A lease is over when it was not renewed for {@link #EXPIRY}, or at once when its holder was a process of this host
 * that is no more, so that a killed run can be resumed without waiting. No locks of the operating system are used:
 * every Hadoop file system can keep a lease.
 */
public final class OutputLock implements AutoCloseable {
  static final Duration RENEWAL = Duration.ofSeconds(10);
  static final Duration EXPIRY = Duration.ofSeconds(60);

  private static final Duration SETTLING = Duration.ofMillis(300);
  private static final int ATTEMPTS = 10;
  private static final Logger LOG = LoggerFactory.getLogger(OutputLock.class);

  private final LeaseFile file;
  private final Lease lease;
  private final ScheduledExecutorService renewer =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "sparkfp4-output-lock");
            thread.setDaemon(true);
            return thread;
          });

  private OutputLock(LeaseFile file, Lease lease) {
    this.file = file;
    this.lease = lease;
    renewer.scheduleAtFixedRate(this::renew, RENEWAL.toMillis(), RENEWAL.toMillis(), TimeUnit.MILLISECONDS);
  }

  /**
   * Takes the lock.
   *
   * @throws OutputLockedException when another run holds it
   */
  public static OutputLock acquire(FileSystem fs, Path path) throws IOException {
    LeaseFile file = new LeaseFile(fs, path);
    Lease mine = Lease.mine();
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (file.create(mine)) {
        OutputLock lock = new OutputLock(file, mine);
        if (RawFileSystem.isObjectStore(fs)) {
          // of two runs that a store without conditional writes let create it, the later has it
          lock.settle();
        }

        return lock;
      }

      Lease held = file.read();
      if (held != null && !held.isOver(mine)) {
        throw new OutputLockedException(
            String.format(
                "Cannot write to %s: another run writes there (process %d on %s, alive %d s ago). Wait until it ends; a "
                    + "dead run's lock ends %d s after its last sign of life",
                path.getParent().getParent(), held.pid(), held.host(),
                Math.max(0, (mine.renewed() - held.renewed()) / 1000), EXPIRY.toSeconds()));
      }

      if (takeOver(file, mine)) {
        OutputLock lock = new OutputLock(file, mine);
        lock.settle();
        return lock;
      }

      file.pause(LeaseFile.BETWEEN_ATTEMPTS);
    }

    throw new OutputLockedException(
        "Cannot lock " + path + ": other runs are taking it at the same time; start one run only");
  }

  /**
   * Puts a lease in the place of a dead one. Of several runs that find it one makes the guard beside it; only then does
   * it look once more, and the lock's file is never away, so that none can create it meanwhile.
   */
  private static boolean takeOver(LeaseFile file, Lease mine) throws IOException {
    LeaseFile guard = new LeaseFile(file.fs(), new Path(file.path().getParent(), file.path().getName() + "-takeover"));
    if (!guard.create(mine)) {
      removeAbandoned(guard);
      return false;
    }

    try {
      Lease held = file.read();
      if (held != null && !held.isOver(mine)) {
        return false;
      }

      if (!file.fs().exists(file.path())) {
        return file.create(mine);
      }

      if (held != null) {
        LOG.info("Taking over from a run that is no more (process {} on {})", held.pid(), held.host());
      }

      file.write(mine);
      return true;
    } finally {
      file.fs().delete(guard.path(), false);
    }
  }

  /** A guard stands for milliseconds, unless its run died within them. */
  private static void removeAbandoned(LeaseFile guard) throws IOException {
    try {
      long age = System.currentTimeMillis() - guard.fs().getFileStatus(guard.path()).getModificationTime();
      if (age > EXPIRY.toMillis()) {
        guard.fs().delete(guard.path(), false);
      }
    } catch (FileNotFoundException e) {
      LOG.debug("The guard {} is gone", guard.path());
    }
  }

  /** After a takeover: lets a holder that only stood still, or a rival, show itself, and sees whose the lock is then. */
  private void settle() throws IOException {
    try {
      file.pause(SETTLING);
      requireHeld();
    } catch (IOException e) {
      close();
      throw e;
    }
  }

  private void renew() {
    try {
      if (isMine()) {
        // in place: with a rename the file would be away for a moment, and another run could take the lock
        file.write(lease.renew());
      }
    } catch (IOException e) {
      LOG.warn("Cannot renew the lock {}: {}", file.path(), e.getMessage());
    }
  }

  private boolean isMine() throws IOException {
    Lease held = file.read();
    return held != null && held.owner().equals(lease.owner());
  }

  /**
   * Asserts that no other run took the lock away, as it may when this process stood still for longer than a lease.
   *
   * @throws OutputLockedException when it did
   */
  public void requireHeld() throws IOException {
    if (!isMine()) {
      throw new OutputLockedException(
          "Cannot finish " + file.path().getParent().getParent() + ": another run took it over while this one stood still; "
              + "that run completes it");
    }
  }

  /** Gives the lock back. */
  @Override
  public void close() throws IOException {
    renewer.shutdownNow();
    try {
      renewer.awaitTermination(5, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }

    if (isMine()) {
      file.fs().delete(file.path(), false);
    }
  }
}
