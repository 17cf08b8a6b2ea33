package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The commands' ways out, and the harness itself. */
class SparkSubmitIT {
  @TempDir
  private Path folder;

  @Test
  void versionIsPrintedAndNothingElse() {
    SparkSubmitResult result = SparkSubmit.local(1).run("--version");

    assertThat(result.status()).isZero();
    assertThat(result.out()).isEqualTo("Spark FP4 " + Version.current() + " (Spark 4.1.3)\n");
  }

  @Test
  void wrongOptionIsAnErrorOfUsage() {
    SparkSubmitResult result = SparkSubmit.local(1).run("synthesize", "--output", "x", "--no-such-option");

    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).contains("Unknown option: '--no-such-option'");
  }

  @Test
  void refusalIsOneLineAndStatusOne() throws Exception {
    Path file = Files.writeString(folder.resolve("there"), "already");

    SparkSubmitResult result = SparkSubmit.local(1).run("synthesize", "--output", folder.toString(), "--size", "4MiB");

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err())
        .contains("Cannot write to file:" + folder + ": it is not empty. Remove it or name another --output.")
        .doesNotContain("JobException");
    assertThat(file).hasContent("already");
  }

  @Test
  void executorsOfLocalClusterDoTheWork() {
    Path output = folder.resolve("checkpoint");
    try (RunningSubmit running = SparkSubmit.localCluster(2)
        .start("synthesize", "--output", output.toString(), "--size", "64MiB", "--shard-size", "8MiB")) {
      running.awaitThat("an executor", () -> !running.executors().isEmpty());

      SparkSubmitResult result = running.await();

      assertThat(result.status()).as(result.err()).isZero();
      assertThat(output.resolve("model.safetensors.index.json")).exists();
    }
  }

  @Test
  void interruptedCommandSaysSoAndNoMore() {
    Path output = folder.resolve("checkpoint");
    try (RunningSubmit running = SparkSubmit.local(1)
        .start("synthesize", "--output", output.toString(), "--size", "8GiB", "--shard-size", "64MiB")) {
      running.awaitThat("a shard", () -> Files.exists(output) && output.toFile().list().length > 0);

      running.interrupt();
      SparkSubmitResult result = running.await();

      assertThat(result.status()).isEqualTo(143);
      assertThat(result.err()).isEqualTo("Interrupted." + System.lineSeparator());
      assertThat(output.resolve("model.safetensors.index.json")).doesNotExist();
    }
  }

  @Test
  void interruptedRunSaysHowToGoOnAndNoMore() throws Exception {
    String source = folder.resolve("source").toString();
    Path output = folder.resolve("quantized");
    SparkSubmitResult made =
        SparkSubmit.local(2).run("synthesize", "--output", source, "--size", "512MiB", "--shard-size", "64MiB");
    assertThat(made.status()).as(made.err()).isZero();
    String[] arguments = {"quantize", "--input", source, "--output", output.toString(), "--max-shard-size", "4MB"};
    // more tasks than one end while Spark stops
    try (RunningSubmit running = SparkSubmit.local(4).start(arguments)) {
      running.awaitThat("a shard", () -> Files.exists(output) && output.toFile().list(
          (dir, name) -> name.endsWith(".safetensors")).length > 0);

      running.interrupt();
      SparkSubmitResult result = running.await();

      assertThat(result.status()).isEqualTo(143);
      assertThat(result.err().lines().dropWhile(line -> !line.startsWith("Stopped"))).containsExactly(
          "Stopped before the end. What is finished is kept; this does the rest:",
          "  sparkfp4 " + String.join(" ", arguments));
      assertThat(result.err()).doesNotContain("Exception", "Interrupted.");
    }
  }

  @Test
  void interruptionIsJsonWhereAskedFor() throws Exception {
    Path output = folder.resolve("checkpoint");
    try (RunningSubmit running = SparkSubmit.local(1).start(
        "synthesize", "--output", output.toString(), "--size", "8GiB", "--shard-size", "64MiB", "--log-format", "json")) {
      running.awaitThat("a shard", () -> Files.exists(output) && output.toFile().list().length > 0);

      running.interrupt();
      SparkSubmitResult result = running.await();

      assertThat(result.err().lines()).hasSize(1);
      assertThat(new ObjectMapper().readTree(result.err()).path("msg").asText()).isEqualTo("Interrupted.");
    }
  }

  @Test
  void killedDriverLeavesNoExecutor() {
    Path output = folder.resolve("checkpoint");
    try (RunningSubmit running = SparkSubmit.localCluster(1)
        .start("synthesize", "--output", output.toString(), "--size", "2GiB", "--shard-size", "64MiB")) {
      running.awaitThat("a shard", () -> Files.exists(output) && output.toFile().list().length > 0);

      running.kill();

      assertThat(running.driver().isAlive()).isFalse();
      assertThat(running.executors()).isEmpty();
      assertThat(output.resolve("model.safetensors.index.json")).doesNotExist();
    }
  }
}
