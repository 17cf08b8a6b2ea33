package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.RandomAccessFile;
import java.io.StringWriter;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPOutputStream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticHeaders;
import org.sparkfp4.layouts.Layouts;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.Planner;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** A checkpoint of two terabytes and of many tensors, in sparse files. */
class LargeCheckpointTest {
  private static final long SHARD_BYTES = 5_000_000_000L;
  private static final ObjectMapper JSON = new ObjectMapper();

  @TempDir
  private Path folder;

  @Test
  void isPlannedFromHeadersAlone() throws IOException {
    SyntheticHeaders model = new SyntheticHeaders("deepseek_v32", new ModelShape(40, 336, 7168, 8192, 129280));
    Files.write(folder.resolve("config.json"), JSON.writeValueAsBytes(model.config()));
    int tensors = write(model);
    StringWriter out = new StringWriter();

    int status = Main.commandLine().setOut(new PrintWriter(out)).execute("inspect", folder.toString());

    assertThat(status).isZero();
    assertThat(tensors).isGreaterThan(70_000);
    assertThat(out.toString())
        .contains("tensors       " + tensors + ", ")
        .containsPattern("(?m)^routed experts +E4M3/F32/128x128 +NVFP4 +" + 3 * 336 * 37 + " +")
        .containsPattern("(?m)^attention +|(?m)^latent attention +E4M3/F32/128x128 +BF16 +latent attention +")
        .containsPattern("(?m)^quantized +9\\d\\.\\d % of the parameters");
  }

  /**
   * 1.5 TB and 250,000 tensors: what the driver holds, writes and sends is in proportion to the tensors, and a task gets
   * its own shard's part alone. jobs/bench/SCALING.md counts with these figures.
   */
  @Test
  void planOfManyTensorsIsSmall() throws IOException {
    int tensors = writeManyTensors();
    Configuration conf = new Configuration();
    long before = usedHeap();

    Checkpoint source = Checkpoint.open(conf, folder.toString());
    QuantizationPlan plan = new Planner(
        source, ModelFamily.of(source.config()), Layouts.named("modelopt"),
        new PlanOptions("modelopt", "rtn", "experts", false, 0), 256L << 20, null).plan();

    long held = usedHeap() - before;
    Path file = folder.resolve("plan.json");
    PlanFile.write(conf, new org.apache.hadoop.fs.Path(file.toString()), plan);
    long sent = 0;
    long largest = 0;
    for (OutputShard shard : plan.shards()) {
      long part = compressed(shard);
      sent += part;
      largest = Math.max(largest, part);
    }

    assertThat(tensors).isGreaterThan(250_000);
    assertThat(plan.sources().stream().mapToLong(SourceFile::length).sum()).isGreaterThan(1_500_000_000_000L);
    assertThat(plan.shards()).hasSizeBetween(512, 1000);
    assertThat(held).as("heap of headers and plan").isLessThan(1500L * tensors);
    assertThat(Files.size(file)).as("plan.json").isLessThan(1000L * tensors);
    assertThat(sent).as("broadcast").isLessThan(80L * tensors);
    assertThat(largest).as("a task's part").isLessThan(3 * sent / plan.shards().size());
    assertThat(source.path()).as("alive until here").isNotNull();
  }

  /**
   * In a JVM of its own, whose heap is a gigabyte. The bound is of CPU time, which a loaded machine does not lengthen much,
   * and several times what it takes.
   */
  @Test
  void manyTensorsAreInspectedInAGigabyteOfHeap() throws Exception {
    int tensors = writeManyTensors();
    Path out = folder.resolve("out.txt");
    List<String> command = new ArrayList<>(List.of(
        ProcessHandle.current().info().command().orElseThrow(), "-Xmx1g", "-cp", System.getProperty("java.class.path")));
    ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
        .filter(argument -> argument.startsWith("--add-")).forEach(command::add);
    command.addAll(List.of(TimedInspection.class.getName(), folder.toString()));

    Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
    int status = process.waitFor();

    String text = Files.readString(out);
    assertThat(status).as(text).isZero();
    assertThat(tensors).isGreaterThan(250_000);
    assertThat(text).contains("tensors       " + tensors + ", ");
    Matcher seconds = Pattern.compile("CPU of the main thread: (\\d+) ms").matcher(text);
    assertThat(seconds.find()).as(text).isTrue();
    assertThat(Long.parseLong(seconds.group(1))).as("milliseconds").isLessThan(45_000);
  }

  /** {@code inspect}, and the CPU time that it took. */
  static final class TimedInspection {
    private TimedInspection() {}

    public static void main(String[] args) {
      int status = Main.commandLine().execute("inspect", args[0]);
      long cpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
      System.out.println("CPU of the main thread: " + cpu / 1_000_000 + " ms");
      System.exit(status);
    }
  }

  private int writeManyTensors() throws IOException {
    SyntheticHeaders model = new SyntheticHeaders("deepseek_v32", new ModelShape(61, 720, 5120, 2304, 129280));
    Files.write(folder.resolve("config.json"), JSON.writeValueAsBytes(model.config()));
    return write(model);
  }

  private static long usedHeap() {
    System.gc();
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  /** Bytes of a shard's part of the plan as it is broadcast. */
  private static long compressed(OutputShard shard) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (OutputStream out = new GZIPOutputStream(bytes)) {
      JSON.writeValue(out, shard);
    }

    return bytes.size();
  }

  private int write(SyntheticHeaders model) throws IOException {
    Map<String, List<TensorInfo>> shards = new LinkedHashMap<>();
    ObjectNode index = JSON.createObjectNode();
    ObjectNode weightMap = index.putObject("weight_map");
    List<TensorInfo> open = new ArrayList<>();
    long end = SHARD_BYTES;
    String file = null;
    int count = 0;
    for (SyntheticHeaders.Header tensor : model.tensors()) {
      long length = tensor.dtype().bytes(tensor.shape().stream().reduce(1L, (a, b) -> a * b));
      if (end + length > SHARD_BYTES) {
        file = "model-%05d.safetensors".formatted(shards.size() + 1);
        open = new ArrayList<>();
        shards.put(file, open);
        end = 0;
      }

      open.add(new TensorInfo(tensor.name(), tensor.dtype(), tensor.shape(), end, end + length));
      end += length;
      weightMap.put(tensor.name(), file);
      count++;
    }

    for (Map.Entry<String, List<TensorInfo>> shard : shards.entrySet()) {
      try (RandomAccessFile out = new RandomAccessFile(folder.resolve(shard.getKey()).toFile(), "rw")) {
        byte[] header = SafetensorsHeader.encode(shard.getValue(), SafetensorsHeader.FORMAT_PT);
        out.write(header);
        out.setLength(header.length + shard.getValue().get(shard.getValue().size() - 1).end());
      }
    }

    Files.write(folder.resolve("model.safetensors.index.json"), JSON.writeValueAsBytes((JsonNode) index));
    return count;
  }
}
