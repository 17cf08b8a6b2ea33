package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** A SparkSubmit on its way. */
final class RunningSubmit implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofMinutes(5);

  private final Process process;
  private final Path folder;

  private RunningSubmit(Process process, Path folder) {
    this.process = process;
    this.folder = folder;
  }

  static RunningSubmit start(List<String> command, Map<String, String> environment) {
    try {
      Path folder = Files.createTempDirectory("spark-submit-");
      ProcessBuilder builder = new ProcessBuilder(command)
          .redirectOutput(folder.resolve("out").toFile())
          .redirectError(folder.resolve("err").toFile());
      builder.environment().putAll(environment);
      // executors of a local cluster work there
      builder.environment().put("SPARK_WORKER_DIR", folder.resolve("work").toString());
      return new RunningSubmit(builder.start(), folder);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot start " + command.get(0), e);
    }
  }

  ProcessHandle driver() {
    return process.toHandle();
  }

  /** The executors' JVMs that live now. */
  List<ProcessHandle> executors() {
    return executors(process).toList();
  }

  /** The executors' JVMs below a process. */
  static Stream<ProcessHandle> executors(Process process) {
    return process.descendants().filter(RunningSubmit::isExecutor);
  }

  /** Stops the driver as Ctrl-C does, by SIGTERM: SIGINT is ignored in all that a shell put in the background. */
  void interrupt() {
    process.destroy();
  }

  /** Ends the driver as a power cut would, and its executors with it. */
  void kill() {
    List<ProcessHandle> executors = executors();
    process.destroyForcibly();
    executors.forEach(ProcessHandle::destroyForcibly);
    await();
  }

  /** Waits until something holds that the run brings about; the run must not end before. */
  void awaitThat(String what, BooleanSupplier holds) {
    Instant limit = Instant.now().plus(LIMIT);
    while (!holds.getAsBoolean()) {
      if (!process.isAlive() || Instant.now().isAfter(limit)) {
        throw new AssertionError(
            "Spark " + (process.isAlive() ? "runs on" : "ended") + " without: " + what + "\n" + read("err"));
      }

      sleep();
    }
  }

  SparkSubmitResult await() {
    try {
      if (!process.waitFor(LIMIT.toSeconds(), TimeUnit.SECONDS)) {
        throw new AssertionError("Spark did not end within " + LIMIT + "\n" + read("err"));
      }
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }

    return new SparkSubmitResult(process.exitValue(), read("out"), read("err"));
  }

  @Override
  public void close() {
    executors().forEach(ProcessHandle::destroyForcibly);
    process.destroyForcibly();
    try {
      process.waitFor();
      FileTree.delete(folder);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private String read(String stream) {
    try {
      return Files.readString(folder.resolve(stream), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isExecutor(ProcessHandle handle) {
    try {
      // ProcessHandle.info() gives up on a command line as long as Spark's class path
      return Files.readString(Path.of("/proc/" + handle.pid() + "/cmdline"), StandardCharsets.ISO_8859_1)
          .contains("CoarseGrainedExecutorBackend");
    } catch (IOException e) {
      return false;
    }
  }

  private static void sleep() {
    try {
      Thread.sleep(20);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
