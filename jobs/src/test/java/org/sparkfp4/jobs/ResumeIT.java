package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** Runs that are killed, as a power cut or an operator would, and what a rerun makes of them. */
class ResumeIT {
  private static final String INDEX = "model.safetensors.index.json";
  private static final String SLOW_COPY = "notes.dat";

  /** 200 MB, 128 experts of three matrices each. */
  private static final ModelShape SHAPE = new ModelShape(4, 32, 512, 512, 1024);

  @TempDir
  private static Path folder;

  private static Path source;
  private static Path undisturbed;

  @BeforeAll
  static void makeSource() throws IOException {
    source = folder.resolve("source");
    new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, SHAPE, DType.BF16, 7, 48 << 20)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toString()));
    undisturbed = folder.resolve("undisturbed");
    SparkSubmitResult result = new InProcess().run(arguments(source, undisturbed));
    assertThat(result.status()).as(result.err()).isZero();
    assertThat(Outputs.identities(undisturbed, ".safetensors").size()).isBetween(15, 40);
  }

  @Test
  void driverKilledAtAnyMoment() throws Exception {
    Path linked = sourceThatIsSlowToPublish();
    Path output = folder.resolve("killed");
    int shards = Outputs.identities(undisturbed, ".safetensors").size();

    Map<String, String> none =
        killWhen(linked, "the plan", output, () -> Files.exists(output.resolve("_sparkfp4/plan.json")));
    Map<String, String> first = killWhen(linked, "a record", output, () -> Outputs.records(output) > none.size());
    assertThat(first).containsAllEntriesOf(none).hasSizeLessThan(shards);
    Map<String, String> some = killWhen(linked, "three more records, and a second run that was refused", output,
        () -> Outputs.records(output) >= first.size() + 3 && isRefused(linked, output));
    assertThat(some).containsAllEntriesOf(first).hasSizeBetween(first.size() + 3, shards);
    Map<String, String> all = killWhen(linked, "publication", output, () -> Files.exists(output.resolve(SLOW_COPY)));
    assertThat(all).containsAllEntriesOf(some).hasSize(shards);
    assertThat(output.resolve(INDEX)).doesNotExist();

    SparkSubmitResult result = new InProcess().run(arguments(linked, output));

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(Outputs.identities(output, ".safetensors")).isEqualTo(all);
    assertThat(output.resolve("_sparkfp4")).doesNotExist();
    Outputs.assertSame(undisturbed, output);
    assertFinishedRunDoesNothing(linked, output);
  }

  /** The source by links, and a file beside it, a hole, whose copy takes long enough to be interrupted. */
  private static Path sourceThatIsSlowToPublish() throws IOException {
    Path linked = Files.createDirectory(folder.resolve("linked"));
    for (String name : source.toFile().list()) {
      Files.createSymbolicLink(linked.resolve(name), source.resolve(name));
    }

    try (RandomAccessFile file = new RandomAccessFile(linked.resolve(SLOW_COPY).toFile(), "rw")) {
      file.setLength(1L << 30);
    }

    return linked;
  }

  /** Starts a run, ends it with SIGKILL when something holds, and gives the shards that it finished. */
  private static Map<String, String> killWhen(Path input, String what, Path output, BooleanSupplier holds)
      throws IOException {
    try (RunningSubmit running = slow(SparkSubmit.local(1)).start(arguments(input, output))) {
      running.awaitThat(what, holds);
      running.kill();
    }

    assertThat(output.resolve(INDEX)).doesNotExist();
    return Outputs.records(output) == 0 ? Map.of() : Outputs.recorded(output);
  }

  /** Whether another run does not start while the first is at work. */
  private static boolean isRefused(Path input, Path output) {
    SparkSubmitResult second = new InProcess().run(arguments(input, output));
    assertThat(second.status()).isEqualTo(1);
    assertThat(second.err()).startsWith("Cannot write to ").contains("another run writes there (process ");
    return true;
  }

  private static void assertFinishedRunDoesNothing(Path input, Path output) {
    Map<String, String> before = Outputs.identities(output, "");

    SparkSubmitResult again = new InProcess().run(arguments(input, output));

    assertThat(again.status()).as(again.err()).isZero();
    assertThat(Outputs.identities(output, "")).isEqualTo(before);
  }

  @Test
  void workerKilledInTheMiddle() throws Exception {
    Path output = folder.resolve("worker");
    try (RunningSubmit running = slow(SparkSubmit.localCluster(2)).start(arguments(source, output))) {
      running.awaitThat("a record and two executors",
          () -> Outputs.records(output) > 0 && running.executors().size() == 2);
      running.executors().get(0).destroyForcibly();

      SparkSubmitResult result = running.await();

      assertThat(result.status()).as(result.err()).isZero();
      assertThat(result.err()).contains("Lost executor");
    }

    Outputs.assertSame(undisturbed, output);
    SparkSubmitResult verified = new InProcess()
        .run("verify", "--source", source.toString(), "--quantized", output.toString(), "--sample", "0");
    assertThat(verified.status()).as(verified.out() + verified.err()).isZero();
  }

  /** With the reference's arithmetic a shard takes long enough to be interrupted; the bytes are the same. */
  private static SparkSubmit slow(SparkSubmit submit) {
    return submit.conf("spark.fp4.cpu.tier", "java");
  }

  private static String[] arguments(Path input, Path output) {
    return new String[] {
      "quantize", "--input", input.toString(), "--output", output.toString(), "--max-shard-size", "3MB"
    };
  }
}
