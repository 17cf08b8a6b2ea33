package org.sparkfp4.sink;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.file.Files;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.safetensors.RawFileSystem;
import org.sparkfp4.safetensors.Utf8Json;

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

  /** {@code Options.CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE} of Hadoop 3.4.2, in S3A. */
  private static final String IF_ABSENT = "fs.option.create.conditional.overwrite";

  private static final Duration SETTLING = Duration.ofMillis(300);
  private static final Duration BETWEEN_ATTEMPTS = Duration.ofMillis(50);
  private static final int ATTEMPTS = 10;
  private static final Logger LOG = LoggerFactory.getLogger(OutputLock.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final FileSystem fs;
  private final Path file;
  private final Lease lease;
  private final ScheduledExecutorService renewer =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            Thread thread = new Thread(task, "sparkfp4-output-lock");
            thread.setDaemon(true);
            return thread;
          });

  /**
   * What the lock file says.
   *
   * @param owner the run's own id
   * @param host where it runs
   * @param pid its process
   * @param started when that process began, milliseconds since the epoch: a process number may be used again
   * @param renewed when the holder last said that it is alive, likewise
   */
  record Lease(String owner, String host, long pid, long started, long renewed) {
    static Lease mine() {
      ProcessHandle self = ProcessHandle.current();
      return new Lease(
          UUID.randomUUID().toString(), hostName(), self.pid(), started(self), System.currentTimeMillis());
    }

    /** A host without a name is taken for another host each time, so that its leases end by their age alone. */
    private static String hostName() {
      try {
        return InetAddress.getLocalHost().getHostName();
      } catch (UnknownHostException e) {
        return "unnamed-" + UUID.randomUUID();
      }
    }

    Lease renew() {
      return new Lease(owner, host, pid, started, System.currentTimeMillis());
    }

    boolean isOver(Lease asker) {
      if (host.equals(asker.host)) {
        return ProcessHandle.of(pid).map(process -> started(process) != started).orElse(true);
      }

      return asker.renewed - renewed > EXPIRY.toMillis();
    }

    private static long started(ProcessHandle process) {
      return process.info().startInstant().map(Instant::toEpochMilli).orElse(0L);
    }
  }

  private OutputLock(FileSystem fs, Path file, Lease lease) {
    this.fs = fs;
    this.file = file;
    this.lease = lease;
    renewer.scheduleAtFixedRate(this::renew, RENEWAL.toMillis(), RENEWAL.toMillis(), TimeUnit.MILLISECONDS);
  }

  /**
   * Takes the lock.
   *
   * @throws OutputLockedException when another run holds it
   */
  public static OutputLock acquire(FileSystem fs, Path file) throws IOException {
    Lease mine = Lease.mine();
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (create(fs, file, mine)) {
        OutputLock lock = new OutputLock(fs, file, mine);
        if (RawFileSystem.isObjectStore(fs)) {
          // of two runs that a store without conditional writes let create it, the later has it
          lock.settle();
        }

        return lock;
      }

      Lease held = read(fs, file);
      if (held != null && !held.isOver(mine)) {
        throw new OutputLockedException(
            String.format(
                "Cannot write to %s: another run writes there (process %d on %s, alive %d s ago). Wait until it ends; a "
                    + "dead run's lock ends %d s after its last sign of life",
                file.getParent().getParent(), held.pid, held.host,
                Math.max(0, (mine.renewed - held.renewed) / 1000), EXPIRY.toSeconds()));
      }

      if (takeOver(fs, file, mine)) {
        OutputLock lock = new OutputLock(fs, file, mine);
        lock.settle();
        return lock;
      }

      pause(file, BETWEEN_ATTEMPTS);
    }

    throw new OutputLockedException(
        "Cannot lock " + file + ": other runs are taking it at the same time; start one run only");
  }

  private static boolean create(FileSystem fs, Path file, Lease lease) throws IOException {
    byte[] content = JSON.writeValueAsBytes(lease);
    boolean local = fs.getUri().getScheme().equals("file");
    makeFolder(fs, file.getParent(), local);
    try {
      if (local) {
        // Hadoop's local file system asks whether the file exists and then creates it, which two runs can do at once
        Files.write(java.nio.file.Path.of(file.toUri().getPath()), content, StandardOpenOption.CREATE_NEW);
      } else {
        // Stores look whether an object exists and write it when the stream closes. Those that can look again then are
        // asked to; where Hadoop or the store does not know the option it goes for nothing.
        FSDataOutputStreamBuilder<?, ?> absent = fs.createFile(file);
        absent.overwrite(false);
        absent.opt(IF_ABSENT, true);
        try (FSDataOutputStream out = absent.build()) {
          out.write(content);
        }
      }

      return true;
    } catch (FileAlreadyExistsException | java.nio.file.FileAlreadyExistsException e) {
      return false;
    } catch (IOException e) {
      // file systems differ in what they throw for a file that exists
      if (fs.exists(file)) {
        return false;
      }

      throw unwritable(file.getParent(), e);
    }
  }

  /** Hadoop's local file system does not say why it made no folder. */
  private static void makeFolder(FileSystem fs, Path folder, boolean local) throws IOException {
    try {
      if (local) {
        Files.createDirectories(java.nio.file.Path.of(folder.toUri().getPath()));
      } else {
        fs.mkdirs(folder);
      }
    } catch (IOException e) {
      throw unwritable(folder, e);
    }
  }

  private static IOException unwritable(Path folder, IOException cause) {
    return new IOException(
        "Cannot write to " + folder.getParent() + ": its folder " + folder.getName() + " cannot be made or written to ("
            + cause + "); choose another folder, or mend this one",
        cause);
  }

  /** The lease in the file; null when there is none any more or its holder died while it wrote it. */
  private static Lease read(FileSystem fs, Path file) throws IOException {
    try {
      for (int attempt = 0; attempt < 20; attempt++) {
        try (InputStream in = fs.open(file)) {
          return JSON.readValue(Utf8Json.reader(in), Lease.class);
        } catch (JsonProcessingException e) {
          // its holder may be just about to write it
          pause(file, BETWEEN_ATTEMPTS);
        }
      }
    } catch (FileNotFoundException e) {
      return null;
    }

    return null;
  }

  /**
   * Puts a lease in the place of a dead one. Of several runs that find it one makes the guard beside it; only then does
   * it look once more, and the lock's file is never away, so that none can create it meanwhile.
   */
  private static boolean takeOver(FileSystem fs, Path file, Lease mine) throws IOException {
    Path guard = new Path(file.getParent(), file.getName() + "-takeover");
    if (!create(fs, guard, mine)) {
      removeAbandoned(fs, guard);
      return false;
    }

    try {
      Lease held = read(fs, file);
      if (held != null && !held.isOver(mine)) {
        return false;
      }

      if (!fs.exists(file)) {
        return create(fs, file, mine);
      }

      if (held != null) {
        LOG.info("Taking over from a run that is no more (process {} on {})", held.pid, held.host);
      }

      write(fs, file, mine);
      return true;
    } finally {
      fs.delete(guard, false);
    }
  }

  /** A guard stands for milliseconds, unless its run died within them. */
  private static void removeAbandoned(FileSystem fs, Path guard) throws IOException {
    try {
      long age = System.currentTimeMillis() - fs.getFileStatus(guard).getModificationTime();
      if (age > EXPIRY.toMillis()) {
        fs.delete(guard, false);
      }
    } catch (FileNotFoundException e) {
      LOG.debug("The guard {} is gone", guard);
    }
  }

  private static void write(FileSystem fs, Path file, Lease lease) throws IOException {
    try (FSDataOutputStream out = fs.create(file, true)) {
      out.write(JSON.writeValueAsBytes(lease));
    }
  }

  private static void pause(Path file, Duration time) throws IOException {
    try {
      Thread.sleep(time.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("Cannot lock " + file + ": interrupted", e);
    }
  }

  /** After a takeover: lets a holder that only stood still, or a rival, show itself, and sees whose the lock is then. */
  private void settle() throws IOException {
    try {
      pause(file, SETTLING);
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
        write(fs, file, lease.renew());
      }
    } catch (IOException e) {
      LOG.warn("Cannot renew the lock {}: {}", file, e.getMessage());
    }
  }

  private boolean isMine() throws IOException {
    Lease held = read(fs, file);
    return held != null && held.owner.equals(lease.owner);
  }

  /**
   * Asserts that no other run took the lock away, as it may when this process stood still for longer than a lease.
   *
   * @throws OutputLockedException when it did
   */
  public void requireHeld() throws IOException {
    if (!isMine()) {
      throw new OutputLockedException(
          "Cannot finish " + file.getParent().getParent() + ": another run took it over while this one stood still; "
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
      fs.delete(file, false);
    }
  }
}
