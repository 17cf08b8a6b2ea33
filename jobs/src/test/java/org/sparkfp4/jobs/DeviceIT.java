package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.kernels.LostDevice;

/** The bytes of the GPU, by both ways in, are those of the CPU; without a GPU, what a user is told. */
class DeviceIT {
  private static final List<String> SOURCES =
      List.of("qwen3_moe_bf16", "deepseek_v3_fp8", "kimi_k25_int4", "kimi_k3_mxfp4");
  private static final List<List<String>> OPTIONS = List.of(
      List.of("--scale-search", "rtn"),
      List.of("--scale-search", "rtn", "--layout", "compressed-tensors"),
      List.of("--scale-search", "sweep", "--targets", "linears"),
      List.of("--scale-search", "four-over-six", "--layout", "compressed-tensors"));

  @TempDir
  private Path folder;

  /** Whole units, then units that are cut, whose amax has a job of its own. */
  @ParameterizedTest
  @CsvSource({"cuda, 256m", "cuda, 16k", "rapids, 256m", "rapids, 16k"})
  void goldenCheckpointsAreTheSame(String device, String unitBytes) throws Exception {
    assumeDevice(device);
    List<String> commands = new ArrayList<>();
    for (String source : SOURCES) {
      for (List<String> options : OPTIONS) {
        commands.addAll(commands.isEmpty() ? List.of() : List.of(CommandSeries.THEN));
        commands.addAll(arguments(source, output(source, options, device), device, options));
        SparkSubmitResult onCpu = new InProcess()
            .conf("spark.fp4.unitBytes", unitBytes)
            .run(arguments(source, output(source, options, "cpu"), "cpu", options).toArray(new String[0]));
        assertThat(onCpu.status()).as(onCpu.err()).isZero();
      }
    }

    SparkSubmitResult onGpu = submit(device)
        .conf("spark.fp4.unitBytes", unitBytes)
        .program(CommandSeries.class)
        .run(commands.toArray(new String[0]));

    assertThat(onGpu.status()).as(onGpu.err()).isZero();
    assertThat(onGpu.err()).doesNotContain("LEAK")
        .containsOnlyOnce("NVFP4 kernels run on " + (device.equals("cuda") ? "CUDA device" : "columns of the RAPIDS"));
    for (String source : SOURCES) {
      for (List<String> options : OPTIONS) {
        Outputs.assertSame(output(source, options, "cpu"), output(source, options, device));
      }
    }
  }

  private Path output(String source, List<String> options, String device) {
    return folder.resolve(source + String.join("", options) + "." + device);
  }

  @ParameterizedTest
  @ValueSource(strings = {"cuda", "rapids"})
  void randomUnitsAreTheSame(String device) {
    assumeDevice(device);

    SparkSubmitResult result =
        submit(device).conf("spark.sql.shuffle.partitions", "4").program(DeviceQueries.class).run(device);

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains("rows are the same on device " + device);
    assertThat(result.err()).doesNotContain("LEAK");
  }

  /** The SQL functions whose result is BINARY, by their names. */
  @Test
  void payloadsAreTheSame() {
    assumeDevice("rapids");

    SparkSubmitResult result = submit("rapids").program(DequantizeQueries.class).run("rapids");

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains("payloads are the same on device rapids");
    assertThat(result.err()).doesNotContain("LEAK");
  }

  /** What a sticky error of CUDA is to a task; it needs no GPU to be thrown. */
  @Test
  void lostDeviceEndsItsExecutorAndAnotherServes() {
    SparkSubmitResult result = SparkSubmit.localCluster(1).program(LostDevice.class).run();

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).isEqualTo("served by executor 1\n"); // the first was 0
    assertThat(result.err()).contains("Lost executor 0 ");
  }

  @Test
  void withoutGpuCudaIsRefusedBeforeAnyWork() throws Exception {
    Assumptions.assumeFalse(Gpu.answers(), "a GPU answers here");

    SparkSubmitResult local = refused("cuda");
    assertThat(local.status()).isEqualTo(1);
    assertThat(local.err()).startsWith("Cannot run on device cuda: ").hasLineCount(1);

    SparkSubmitResult rapids = refused("rapids");
    assertThat(rapids.status()).isEqualTo(1);
    assertThat(rapids.err())
        .startsWith("Cannot run on device rapids: the RAPIDS Accelerator is not active in this session. ")
        .hasLineCount(1);

    // the driver asks an executor, and does not look itself
    SparkSubmitResult cluster = refusedByExecutor(SparkSubmit.localCluster(1), "cuda");
    assertThat(cluster.status()).isEqualTo(1);
    assertThat(cluster.err()).contains("Cannot run on device cuda: ").contains(" (executor ");

    SparkSubmitResult tier =
        refusedByExecutor(SparkSubmit.localCluster(1).conf("spark.fp4.cpu.tier", "neon"), "cpu");
    assertThat(tier.status()).isEqualTo(1);
    assertThat(tier.err()).contains("Invalid kernel tier: neon, available here: auto").contains(" (executor ");
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void withoutGpuAutoSaysOnceWhatComputesAndWhy() {
    Assumptions.assumeFalse(Gpu.answers(), "a GPU answers here");

    SparkSubmitResult result = SparkSubmit.local(2)
        .run(arguments(SOURCES.get(0), folder.resolve("output"), "auto", OPTIONS.get(0)).toArray(new String[0]));

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.err()).containsOnlyOnce("NVFP4 kernels run ").contains("device auto found no GPU: ");
  }

  @Test
  void unknownDeviceIsAnErrorOfUsage() {
    SparkSubmitResult result = refused("gpu");

    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).startsWith("Invalid device: gpu, must be one of auto, cpu, cuda, rapids");
  }

  private SparkSubmitResult refused(String device) {
    return new InProcess().run(arguments(SOURCES.get(0), folder.resolve("output"), device, OPTIONS.get(0))
        .toArray(new String[0]));
  }

  private SparkSubmitResult refusedByExecutor(SparkSubmit cluster, String device) {
    return cluster.run(arguments(SOURCES.get(0), folder.resolve("output"), device, OPTIONS.get(0))
        .toArray(new String[0]));
  }

  private static SparkSubmit submit(String device) {
    SparkSubmit submit = SparkSubmit.local(4);
    return device.equals("rapids")
        ? submit.heap("4g")
            .conf("spark.jars", System.getProperty("sparkfp4.rapids.jar"))
            .conf("spark.plugins", "com.nvidia.spark.SQLPlugin")
            .conf("spark.rapids.memory.pinnedPool.size", "1g")
            .conf("spark.rapids.memory.gpu.allocFraction", "0.3")
            .conf("spark.rapids.shuffle.enabled", "false")
        : submit;
  }

  private static List<String> arguments(String source, Path output, String device, List<String> options) {
    List<String> arguments = new ArrayList<>(List.of("quantize", "--input", CheckpointFiles.golden(source).toString(),
        "--output", output.toString(), "--device", device));
    arguments.addAll(options);
    return arguments;
  }

  private static void assumeDevice(String device) {
    Assumptions.assumeTrue(Gpu.answers(), "no GPU answers here");
    Assumptions.assumeTrue(device.equals("cuda") || System.getProperty("sparkfp4.rapids.jar") != null,
        "no -Drapids.jar=JAR, the RAPIDS Accelerator's");
  }
}
