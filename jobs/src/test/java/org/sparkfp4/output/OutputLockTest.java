package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class OutputLockTest {
  private static final ObjectMapper JSON = new ObjectMapper();

  @TempDir private java.nio.file.Path folder;

  private FileSystem fs;
  private Path lock;

  @BeforeEach
  void place() throws IOException {
    Path output = new Path(folder.toUri());
    fs = Storage.of(output, new Configuration(), "auto").fs();
    lock = new StagingFolder(fs, output).lock();
  }

  @Test
  void secondRunIsRefusedWhileTheFirstLives() throws IOException {
    try (OutputLock held = OutputLock.acquire(fs, lock)) {
      held.requireHeld();
      assertThatThrownBy(() -> OutputLock.acquire(fs, lock))
          .isInstanceOf(OutputLockedException.class)
          .hasMessageContaining("another run writes there (process " + ProcessHandle.current().pid())
          .hasMessageContaining(folder.toString());
    }

    assertThat(Files.exists(java.nio.file.Path.of(lock.toUri().getPath()))).isFalse();
    OutputLock.acquire(fs, lock).close();
  }

  @Test
  void lockOfADeadProcessOfThisHostIsTakenAtOnce() throws Exception {
    Process process = new ProcessBuilder("true").start();
    process.waitFor();
    leave(new Lease("dead", InetAddress.getLocalHost().getHostName(), process.pid(), 1, now()));
    try (OutputLock held = OutputLock.acquire(fs, lock)) {
      held.requireHeld();
    }
  }

  @Test
  void processNumberUsedAgainIsNotTheHolder() throws Exception {
    long pid = ProcessHandle.current().pid();
    leave(new Lease("dead", InetAddress.getLocalHost().getHostName(), pid, 12345, now()));
    OutputLock.acquire(fs, lock).close();
  }

  @Test
  void lockOfAnotherHostEndsWhenItIsNotRenewed() throws Exception {
    leave(new Lease("far", "another-host", 1, 1, now()));
    assertThatThrownBy(() -> OutputLock.acquire(fs, lock))
        .isInstanceOf(OutputLockedException.class)
        .hasMessageContaining("process 1 on another-host");
    leave(new Lease("far", "another-host", 1, 1, now() - OutputLock.EXPIRY.toMillis() - 1000));
    OutputLock.acquire(fs, lock).close();
  }

  @Test
  void lockFileThatItsHolderNeverFinishedIsTaken() throws IOException {
    write(new byte[0]);
    OutputLock.acquire(fs, lock).close();
  }

  @Test
  void runThatLostItsLockMayNotPublishNorTakeTheNewOneAway() throws Exception {
    OutputLock lost = OutputLock.acquire(fs, lock);
    leave(new Lease("other", "another-host", 1, 1, now()));
    assertThatThrownBy(lost::requireHeld)
        .isInstanceOf(OutputLockedException.class)
        .hasMessageContaining("another run took it over");
    lost.close();
    assertThat(fs.exists(lock)).isTrue();
  }

  /** It died within the milliseconds that a takeover lasts. */
  @Test
  void takeoverThatItsRunAbandoned() throws IOException {
    leave(new Lease("dead", "another-host", 1, 1, 0));
    Path guard = new Path(lock.getParent(), "lock-takeover");
    fs.create(guard).close();
    assertThatThrownBy(() -> OutputLock.acquire(fs, lock))
        .isInstanceOf(OutputLockedException.class)
        .hasMessage("Cannot lock " + lock + ": other runs are taking it at the same time; start one run only");

    fs.setTimes(guard, now() - OutputLock.EXPIRY.toMillis() - 1000, -1);
    OutputLock.acquire(fs, lock).close();
    assertThat(fs.exists(guard)).isFalse();
  }

  @Test
  void ofManyRunsThatFindADeadLockOneGoesOn() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    try {
      for (int round = 0; round < 20; round++) {
        leave(new Lease("dead", "another-host", 1, 1, 0));
        List<Callable<OutputLock>> tries = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
          tries.add(
              () -> {
                try {
                  return OutputLock.acquire(fs, lock);
                } catch (OutputLockedException e) {
                  return null;
                }
              });
        }

        int holders = 0;
        for (Future<OutputLock> result : pool.invokeAll(tries)) {
          OutputLock held = result.get();
          if (held != null) {
            holders++;
            held.requireHeld();
            held.close();
          }
        }

        assertThat(holders).isEqualTo(1);
        fs.delete(lock.getParent(), true);
      }
    } finally {
      pool.shutdownNow();
    }
  }

  private static long now() {
    return System.currentTimeMillis();
  }

  private void leave(Lease lease) throws IOException {
    write(JSON.writeValueAsBytes(lease));
  }

  private void write(byte[] content) throws IOException {
    fs.mkdirs(lock.getParent());
    try (var out = fs.create(lock, true)) {
      out.write(content);
    }
  }
}
