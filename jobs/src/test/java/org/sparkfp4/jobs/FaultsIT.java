package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/**
 * What can go wrong under a run, done to real processes. After each fault the same command gives the bytes of a run
 * that nothing disturbed, and keeps the shards that were finished.
 */
class FaultsIT {
  private static final String INDEX = "model.safetensors.index.json";
  private static final String SHARD = "model-00001-of-00001.safetensors";

  /** 100 MB, 64 experts of three matrices each, in one file. */
  private static final ModelShape SHAPE = new ModelShape(4, 16, 512, 512, 1024);

  @TempDir
  private static Path folder;

  private static Path source;
  private static Path backup;
  private static Path undisturbed;

  @BeforeAll
  static void makeSource() throws IOException {
    source = folder.resolve("source");
    new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, SHAPE, DType.BF16, 11, 1L << 30)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toString()));
    backup = Files.copy(source.resolve(SHARD), folder.resolve("backup"), StandardCopyOption.COPY_ATTRIBUTES);
    undisturbed = folder.resolve("undisturbed");
    assertSucceeds(undisturbed);
    assertThat(Outputs.identities(undisturbed, ".safetensors").size()).isBetween(20, 60);
  }

  @ParameterizedTest
  @ValueSource(strings = {"local", "cluster"})
  void sourceThatIsTruncated(String where) throws Exception {
    Path output = folder.resolve("truncated-" + where);
    SparkSubmit submit = where.equals("local") ? SparkSubmit.local(2) : SparkSubmit.localCluster(2);
    try (RunningSubmit running = slow(submit).start(arguments(output))) {
      awaitRecord(running, output);
      try (FileChannel file = FileChannel.open(source.resolve(SHARD), StandardOpenOption.WRITE)) {
        file.truncate(4096);
      }

      assertNamesSource(running.await(), output);
    } finally {
      restoreSource();
    }

    assertRerunCompletes(output);
  }

  /** Of the same length, and not by a rename: what is mapped changes too. */
  @Test
  void sourceThatIsWrittenAnew() throws Exception {
    Path output = folder.resolve("anew");
    try (RunningSubmit running = slow(SparkSubmit.local(2)).start(arguments(output))) {
      awaitRecord(running, output);
      try (FileChannel from = FileChannel.open(backup, StandardOpenOption.READ);
          FileChannel to = FileChannel.open(source.resolve(SHARD), StandardOpenOption.WRITE)) {
        // its second half in the place of the first
        from.transferTo(from.size() / 2, from.size() / 2, to);
      }

      assertNamesSource(running.await(), output);
    } finally {
      restoreSource();
    }

    assertRerunCompletes(output);
  }

  private static void assertNamesSource(SparkSubmitResult result, Path output) {
    assertThat(result.status()).as(result.err()).isEqualTo(1);
    assertThat(result.err())
        .contains("Cannot read file:" + source + "/" + SHARD + ": ", "do not change a checkpoint while it is read")
        .doesNotContain("Lost executor", "fatal error", "\tat ");
    assertThat(output.resolve(INDEX)).doesNotExist();
  }

  private static void restoreSource() throws IOException {
    Files.copy(backup, source.resolve(SHARD), StandardCopyOption.REPLACE_EXISTING,
        StandardCopyOption.COPY_ATTRIBUTES);
  }

  /** A folder that is not empty stands where a shard is to get its name. */
  @Test
  void taskThatFailsEveryTime() throws Exception {
    Path output = folder.resolve("obstacle");
    String last =
        Outputs.identities(undisturbed, ".safetensors").keySet().stream().max(String::compareTo).orElseThrow();
    Path obstacle = output.resolve(last);
    try (RunningSubmit running = slow(SparkSubmit.localCluster(1)).start(arguments(output))) {
      awaitRecord(running, output);
      Files.createDirectories(obstacle.resolve("in the way"));

      SparkSubmitResult result = running.await();

      assertThat(result.status()).as(result.err()).isEqualTo(1);
      assertThat(result.err()).contains("Cannot ", obstacle.toString());
    }

    assertThat(output.resolve(INDEX)).doesNotExist();
    assertThat(Outputs.records(output)).isPositive();
    FileTree.delete(obstacle);
    assertRerunCompletes(output);
  }

  /** Somebody else takes the room that was free when the run began. */
  @Test
  void diskThatFillsUp() throws Exception {
    long size = 2 * bytes(undisturbed);
    try (Mount disk = Mount.ofSize(folder.resolve("disk"), size)) {
      Path output = disk.folder().resolve("output");
      Path other = disk.folder().resolve("somebody else's");
      try (RunningSubmit running = slow(SparkSubmit.local(1)).start(arguments(output))) {
        awaitRecord(running, output);
        fill(other, size);

        SparkSubmitResult result = running.await();

        assertThat(result.status()).as(result.err()).isEqualTo(1);
        assertThat(result.err())
            .contains("Cannot write file:" + output, "No space left on device", "finished shards are kept");
      }

      assertThat(output.resolve(INDEX)).doesNotExist();
      SparkSubmitResult refused = new InProcess().run(arguments(output));
      assertThat(refused.status()).isEqualTo(1);
      assertThat(refused.err()).contains("bytes are needed and ", "make room");
      Files.delete(other);
      assertRerunCompletes(output);
    }
  }

  private static void fill(Path file, long atMost) throws IOException {
    byte[] piece = new byte[1 << 16];
    try (var out = Files.newOutputStream(file)) {
      for (long written = 0; written < atMost; written += piece.length) {
        out.write(piece);
      }
    } catch (IOException e) {
      assertThat(e).hasMessageContaining("No space left on device");
    }
  }

  @Test
  void outputThatBecomesReadOnly() throws Exception {
    try (Mount disk = Mount.ofSize(folder.resolve("read-only"), 2 * bytes(undisturbed))) {
      Path output = disk.folder().resolve("output");
      try (RunningSubmit running = slow(SparkSubmit.local(1)).start(arguments(output))) {
        awaitRecord(running, output);
        // between two shards nothing is open
        running.awaitThat("a moment to become read-only", disk::makeReadOnly);

        SparkSubmitResult result = running.await();

        assertThat(result.status()).as(result.err()).isEqualTo(1);
        assertThat(result.err()).contains("Cannot ", "Read-only file system");
      }

      assertThat(output.resolve(INDEX)).doesNotExist();
      Map<String, String> before = Outputs.identities(output, ".safetensors");
      SparkSubmitResult refused = new InProcess().run(arguments(output));
      assertThat(refused.status()).isEqualTo(1);
      assertThat(refused.err()).startsWith("Cannot ").contains("ead-only").hasLineCount(1);
      assertThat(Outputs.identities(output, ".safetensors")).isEqualTo(before);
      disk.makeWritable();
      assertRerunCompletes(output);
    }
  }

  /** One executor stands still for a while: its shard is begun again on the other, and both end. */
  @Test
  void slowTaskWithSpeculation() throws Exception {
    Path output = folder.resolve("speculation");
    Path events = Files.createDirectory(folder.resolve("events"));
    try (StandaloneCluster cluster = StandaloneCluster.start(2)) {
      runWithOneExecutorThatStandsStill(cluster, output, events);
    }

    assertThat(speculativeTasks(events)).isPositive();
    assertThat(output.resolve("_sparkfp4")).doesNotExist();
    Outputs.assertSame(undisturbed, output);
  }

  private static void runWithOneExecutorThatStandsStill(StandaloneCluster cluster, Path output, Path events)
      throws Exception {
    SparkSubmit submit = SparkSubmit.on(cluster)
        .conf("spark.speculation", "true")
        .conf("spark.speculation.interval", "50ms")
        .conf("spark.speculation.efficiency.enabled", "false")
        .conf("spark.speculation.quantile", "0.1")
        .conf("spark.speculation.multiplier", "1.1")
        .conf("spark.speculation.minTaskRuntime", "100ms")
        // the other may be fetching its part of the broadcast from the one that is stopped: it asks the driver soon
        .conf("spark.shuffle.io.connectionTimeout", "2s")
        .conf("spark.shuffle.io.maxRetries", "0")
        // it stands still for as long as the other takes for all shards, and is not given up meanwhile
        .conf("spark.network.timeout", "600s")
        .conf("spark.eventLog.enabled", "true")
        .conf("spark.eventLog.compress", "false")
        .conf("spark.eventLog.dir", events.toUri().toString());
    try (RunningSubmit running = slow(submit).start(arguments(output))) {
      running.awaitThat("a record and two executors",
          () -> Outputs.records(output) > 0 && cluster.executors().size() == 2);
      String executor = Long.toString(cluster.executors().get(0).pid());
      signal("STOP", executor);
      // all shards but the one that stands still, and that one again
      int shards = Outputs.identities(undisturbed, ".safetensors").size();
      running.awaitThat("every shard", () -> Outputs.records(output) == shards || Files.exists(output.resolve(INDEX)));
      signal("CONT", executor);

      SparkSubmitResult result = running.await();
      assertThat(result.status()).as(result.err()).isZero();
    }
  }

  private static void signal(String signal, String process) throws Exception {
    assertThat(new ProcessBuilder("kill", "-" + signal, process).start().waitFor()).isZero();
  }

  /** Speculative tasks that were started, as Spark's own event log has them. */
  private static long speculativeTasks(Path events) throws IOException {
    try (Stream<Path> files = Files.walk(events)) {
      long count = 0;
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        try (Stream<String> lines = Files.lines(file)) {
          count += lines
              .filter(line -> line.startsWith("{\"Event\":\"SparkListenerTaskStart\""))
              .filter(line -> line.contains("\"Speculative\":true"))
              .count();
        }
      }

      return count;
    }
  }

  private static void awaitRecord(RunningSubmit running, Path output) {
    running.awaitThat("a record", () -> Outputs.records(output) > 0);
  }

  private static void assertRerunCompletes(Path output) throws IOException {
    Map<String, String> finished = Outputs.recorded(output);
    assertSucceeds(output);
    assertThat(Outputs.identities(output, ".safetensors")).containsAllEntriesOf(finished);
    assertThat(output.resolve("_sparkfp4")).doesNotExist();
    Outputs.assertSame(undisturbed, output);
  }

  private static void assertSucceeds(Path output) {
    SparkSubmitResult result = new InProcess().run(arguments(output));
    assertThat(result.status()).as(result.err()).isZero();
  }

  private static long bytes(Path checkpoint) throws IOException {
    long bytes = 0;
    for (String file : checkpoint.toFile().list()) {
      bytes += Files.size(checkpoint.resolve(file));
    }

    return bytes;
  }

  /** With the reference's arithmetic a shard takes long enough for something to happen; the bytes are the same. */
  private static SparkSubmit slow(SparkSubmit submit) {
    return submit.conf("spark.fp4.cpu.tier", "java");
  }

  private static String[] arguments(Path output) {
    return new String[] {
      "quantize", "--input", source.toString(), "--output", output.toString(), "--max-shard-size", "1MB"
    };
  }
}
