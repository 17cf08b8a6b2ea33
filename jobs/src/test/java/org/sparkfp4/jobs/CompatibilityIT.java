package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;

/** The jar on other versions of Spark than the one that it is built for, each a process of its own. */
class CompatibilityIT {
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");

  @TempDir
  private Path folder;

  /** Quantized and verified in one session; the bytes are those of the Spark that the product is built for. */
  @ParameterizedTest
  @ValueSource(strings = {"4.0.4", "4.2.0"})
  void rowsGiveTheSameBytes(String version) throws Exception {
    Path expected = folder.resolve("expected");
    Path output = folder.resolve("output");
    SparkSubmitResult built = new InProcess().run(quantize(expected));
    assertThat(built.status()).as(built.err()).isZero();

    SparkSubmitResult result = SparkSubmit.local(2).spark(version).program(CommandSeries.class).run(
        "quantize", "--input", SOURCE.toString(), "--output", output.toString(), "--max-shard-size", "100KB",
        CommandSeries.THEN, "verify", "--source", SOURCE.toString(), "--quantized", output.toString());

    assertThat(result.status()).as(result.out() + result.err()).isZero();
    Outputs.assertSame(expected, output);
    assertThat(result.err().lines().filter(line -> line.contains("do not run on host columns")))
        .singleElement().asString().contains("this is Spark " + version + ", ").contains("row by row");
    assertThat(result.err()).doesNotContain("Exception", "Error");
  }

  private static String[] quantize(Path output) {
    return new String[] {
      "quantize", "--input", SOURCE.toString(), "--output", output.toString(), "--max-shard-size", "100KB"
    };
  }

  @Test
  void olderSparkIsRefusedInOneLine() {
    SparkSubmitResult result = SparkSubmit.local(1).spark("3.5.9").run(quantize(folder.resolve("output")));

    assertThat(result.status()).isEqualTo(1);
    assertThat(result.err().strip())
        .startsWith("Cannot run on Spark 3.5.9: ")
        .endsWith("needs 4.0 or later; start it with the spark-submit of a newer Spark")
        .doesNotContain("\n");
    assertThat(folder.resolve("output")).doesNotExist();
  }
}
