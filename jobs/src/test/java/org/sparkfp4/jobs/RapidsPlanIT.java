package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;

/**
 * The RAPIDS Accelerator's own judgement of our plans, which it gives without a GPU. Needs its jar: {@code
 * -Drapids.jar=JAR}.
 */
class RapidsPlanIT {
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");

  private static final List<String> FUNCTIONS =
      List.of("nvfp4_quantize", "nvfp4_amax", "nvfp4_dequantize", "mxfp4_dequantize");

  @TempDir
  private Path folder;

  @Test
  void functionsWillRunOnGpu() throws Exception {
    String jar = System.getProperty("sparkfp4.rapids.jar");
    Assumptions.assumeTrue(jar != null, "no -Drapids.jar=JAR, the RAPIDS Accelerator's");
    Path planned = folder.resolve("planned");

    // units of more than 4 KiB are cut, and nvfp4_amax finds their amax first
    SparkSubmitResult result = SparkSubmit.local(2)
        .conf("spark.jars", jar)
        .conf("spark.plugins", "com.nvidia.spark.SQLPlugin")
        .conf("spark.rapids.sql.mode", "explainOnly")
        .conf("spark.rapids.sql.explain", "ALL")
        .conf("spark.fp4.unitBytes", "4096")
        .program(PlannedFunctions.class)
        .run("quantize", "--input", SOURCE.toString(), "--output", planned.toString(), "--scale-search", "rtn");

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains("payloads are the same on device auto");
    // STRUCT, FLOAT and BINARY by their SQL names; the command's own, nvfp4_amax and nvfp4_quantize, have none
    for (String function : FUNCTIONS) {
      assertThat(lines(result, "<ScalaUDF> " + function + "(")).as(function).isNotEmpty();
    }

    assertThat(lines(result, "<ScalaUDF> UDF(")).as("nvfp4_amax, then nvfp4_quantize").hasSizeGreaterThanOrEqualTo(2);
    assertThat(lines(result, "<ScalaUDF>"))
        .allSatisfy(line -> assertThat(line).contains("*Expression <ScalaUDF>").endsWith("will run on GPU"));
    assertThat(lines(result, "<ProjectExec>")).isNotEmpty()
        .allSatisfy(line -> assertThat(line).contains("*Exec <ProjectExec> will run on GPU"));

    Path plain = folder.resolve("plain");
    SparkSubmitResult without = new InProcess()
        .run("quantize", "--input", SOURCE.toString(), "--output", plain.toString(), "--scale-search", "rtn");
    assertThat(without.status()).as(without.err()).isZero();
    Outputs.assertSame(plain, planned);
  }

  private static List<String> lines(SparkSubmitResult result, String text) {
    return result.err().lines().filter(line -> line.contains(text)).toList();
  }
}
