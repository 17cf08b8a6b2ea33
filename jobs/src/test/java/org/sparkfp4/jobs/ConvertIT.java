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

/** Conversions that are killed, and what a rerun makes of them. */
class ConvertIT {
  private static final String INDEX = "model.safetensors.index.json";
  private static final String CONTAINER = "external_nvfp4_moe_weights.safetensors";
  private static final String SLOW_COPY = "notes.dat";

  @TempDir
  private static Path folder;

  private static Path plain;
  private static Path source;
  private static Path undisturbed;

  @BeforeAll
  static void makeSource() throws IOException {
    plain = folder.resolve("plain");
    new SyntheticCheckpoint(
            SyntheticFamily.QWEN3_MOE, new ModelShape(6, 128, 256, 128, 512), DType.BF16, 7, 48 << 20)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(plain.toString()));
    source = folder.resolve("source");
    SparkSubmitResult quantized = new InProcess().run("quantize", "--input", plain.toString(), "--output",
        source.toString(), "--scale-search", "rtn", "--max-shard-size", "8MB");
    assertThat(quantized.status()).as(quantized.err()).isZero();
    undisturbed = folder.resolve("undisturbed");
    SparkSubmitResult result = new InProcess().run(arguments(undisturbed));
    assertThat(result.status()).as(result.err()).isZero();
    // a file beside the weights, a hole, whose copy takes long enough to be interrupted
    try (RandomAccessFile file = new RandomAccessFile(source.resolve(SLOW_COPY).toFile(), "rw")) {
      file.setLength(1L << 30);
    }
  }

  @Test
  void killedAtAnyMoment() throws Exception {
    Path output = folder.resolve("killed");

    killWhen("the plan", output, () -> Files.exists(output.resolve("_sparkfp4/plan.json")));
    int none = Outputs.records(output);
    killWhen("a part's record", output, () -> Outputs.records(output) > none);
    assertThat(Outputs.records(output)).isGreaterThan(none);
    killWhen("publication", output, () -> Files.exists(output.resolve(SLOW_COPY)));
    Map<String, String> all = Outputs.recorded(output);
    assertThat(all).containsKey(CONTAINER);

    SparkSubmitResult result = new InProcess().run(arguments(output));

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(Outputs.identities(output, ".safetensors")).isEqualTo(all);
    assertThat(output.resolve("_sparkfp4")).doesNotExist();
    Outputs.assertSame(undisturbed, output);
    SparkSubmitResult verified = new InProcess().run("verify", "--manifest", "--quantized", output.toString());
    assertThat(verified.status()).as(verified.out() + verified.err()).isZero();
  }

  /** Of the two steps of quantize the first is not done again. */
  @Test
  void quantizationKilledBetweenItsSteps() throws Exception {
    Path output = folder.resolve("quantized");
    String[] arguments = {
      "quantize", "--input", plain.toString(), "--layout", "trt-edge-llm-sm110", "--output", output.toString(),
      "--scale-search", "rtn", "--max-shard-size", "3MB"
    };
    Path staged = output.resolve("_sparkfp4/modelopt");
    killWhen("the first step's index", output, () -> Files.exists(staged.resolve(INDEX)), arguments);
    Map<String, String> first = Outputs.identities(staged, ".safetensors");
    killWhen("the second step's record", output, () -> Outputs.records(output) > 0, arguments);
    assertThat(Outputs.identities(staged, ".safetensors")).isEqualTo(first);

    SparkSubmitResult result = new InProcess().run(arguments);

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(output.resolve("_sparkfp4")).doesNotExist();
    assertThat(Files.mismatch(undisturbed.resolve(CONTAINER), output.resolve(CONTAINER))).isEqualTo(-1);
  }

  private static void killWhen(String what, Path output, BooleanSupplier holds) throws IOException {
    killWhen(what, output, holds, arguments(output));
  }

  private static void killWhen(String what, Path output, BooleanSupplier holds, String... arguments)
      throws IOException {
    try (RunningSubmit running = SparkSubmit.local(1).start(arguments)) {
      running.awaitThat(what, holds);
      running.kill();
    }

    assertThat(output.resolve(INDEX)).doesNotExist();
  }

  private static String[] arguments(Path output) {
    return new String[] {
      "convert", "--input", source.toString(), "--to", "trt-edge-llm-sm110", "--output", output.toString(),
      "--max-shard-size", "3MB"
    };
  }
}
