package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.safetensors.DType;

/** A run over keys whose driver is killed, among the ranges and among the layers, and what a rerun makes of it. */
class KeysResumeIT {
  private static final int LAYERS = 24;

  @TempDir
  private static Path folder;

  private static Path undisturbed;

  @BeforeAll
  static void makeKeys() throws IOException {
    KeyFiles keys = new KeyFiles();
    for (int layer = 0; layer < LAYERS; layer++) {
      keys.gaussian("model.layers." + layer + ".index_k", DType.BF16, 0.1, 20_000, 128);
    }

    keys.write(folder.resolve("in/keys.safetensors"));
    undisturbed = folder.resolve("undisturbed");
    SparkSubmitResult result = new InProcess().run(arguments(undisturbed));
    assertThat(result.status()).as(result.err()).isZero();
  }

  @Test
  void driverKilledAmongRangesAndAmongLayers() throws IOException {
    Path output = folder.resolve("killed");

    int ranges = killAfter(output, 1);
    int layers = killAfter(output, LAYERS + 1);

    assertThat(ranges).isLessThan(2 * LAYERS);
    assertThat(layers).isBetween(LAYERS + 1, 2 * LAYERS);
    SparkSubmitResult result = SparkSubmit.local(2).run(arguments(output));
    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.err()).contains("Resuming: to be written are 0 ranges and ");
    Outputs.assertSame(undisturbed, output);
    assertThat(output.resolve("_sparkfp4")).doesNotExist();
  }

  /** Ends a slow run with SIGKILL once it has left so many records, and gives how many there are. */
  private static int killAfter(Path output, int records) throws IOException {
    try (RunningSubmit running =
        SparkSubmit.local(1).conf("spark.fp4.cpu.tier", "java").start(arguments(output))) {
      running.awaitThat(records + " records", () -> Outputs.records(output) >= records);
      running.kill();
    }

    assertThat(output.resolve("keys.safetensors.index.json")).doesNotExist();
    return Outputs.records(output);
  }

  private static String[] arguments(Path output) {
    return new String[] {
      "quantize-keys", "--input", folder.resolve("in").toString(), "--output", output.toString()
    };
  }
}
