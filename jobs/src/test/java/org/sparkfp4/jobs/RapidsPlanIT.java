package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
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
    Path plain = folder.resolve("plain");
    SparkSubmitResult without = new InProcess()
        .run("quantize", "--input", SOURCE.toString(), "--output", plain.toString(), "--scale-search", "rtn");
    assertThat(without.status()).as(without.err()).isZero();
    Outputs.assertSame(plain, planned);
  }
}
