package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.spark.sql.execution.ui.SQLAppStatusStore;
import org.apache.spark.sql.execution.ui.SQLExecutionUIData;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.TestSpark;
import scala.jdk.javaapi.CollectionConverters;

/** What is seen of a run while it runs: Spark's SQL page, its metrics system, the terminal, the log. */
class LiveViewIT {
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");
  private static final ObjectMapper JSON = new ObjectMapper();

  @TempDir
  private Path folder;

  @Test
  void sqlPageHasSumsOfSourceFunctionAndSink() throws Exception {
    SparkSubmitResult result = new InProcess().run(arguments());

    assertThat(result.status()).as(result.err()).isZero();
    Map<String, String> metrics = metricsOfWrite();
    long bytes = 0;
    for (Path shard : files("output", "model-.*safetensors")) {
      bytes += Files.size(shard);
    }

    assertThat(metrics)
        .containsEntry("size of shards written", org.apache.spark.util.Utils.bytesToString(bytes))
        .containsEntry("number of slabs", metrics.get("number of units"))
        .containsEntry("number of units of zeros", "0")
        .containsEntry("number of blocks that no exact cast could hold", "0");
    assertThat(metrics.get("number of units")).matches("[1-9]\\d*");
    assertThat(metrics.get("number of codes of magnitude 6")).matches("[1-9]\\d*");
    assertThat(metrics.get("number of subnormal block scales")).matches("\\d+");
    assertThat(metrics.get("size of source tensors read")).matches("[1-9].*KiB");
    assertThat(metrics.get("size of functions' results")).contains("KiB");
    assertThat(metrics.get("size of functions' arguments")).contains("KiB");
    assertThat(metrics.get("time in functions")).contains("ms");
  }

  /** The metrics that the SQL page shows of the last query that wrote, by what they are called there. */
  private static Map<String, String> metricsOfWrite() throws Exception {
    TestSpark.awaitEvents();
    SQLAppStatusStore store = TestSpark.session().sharedState().statusStore();
    List<SQLExecutionUIData> executions = CollectionConverters.asJava(store.executionsList());
    SQLExecutionUIData last = executions.get(executions.size() - 1);
    Map<Object, String> values = CollectionConverters.asJava(store.executionMetrics(last.executionId()));
    Map<String, String> metrics = new TreeMap<>();
    CollectionConverters.asJava(last.metrics())
        .forEach(metric -> metrics.put(metric.name(), values.get(metric.accumulatorId())));
    return metrics;
  }

  @Test
  void metricsSystemOfDriverAndExecutorHasCounters() throws Exception {
    Path csv = Files.createDirectory(folder.resolve("csv"));

    SparkSubmitResult result = SparkSubmit.localCluster(1)
        .conf("spark.metrics.conf.*.sink.csv.class", "org.apache.spark.metrics.sink.CsvSink")
        .conf("spark.metrics.conf.*.sink.csv.period", "1")
        .conf("spark.metrics.conf.*.sink.csv.unit", "seconds")
        .conf("spark.metrics.conf.*.sink.csv.directory", csv.toString())
        .run(arguments());

    assertThat(result.status()).as(result.err()).isZero();
    long shards = files("output", "model-.*safetensors").size();
    assertThat(lastCount("driver", "run.shardsPlanned")).isEqualTo(shards);
    assertThat(lastCount("driver", "run.shardsFinished")).isEqualTo(shards);
    assertThat(lastCount("0", "sink.shards")).isEqualTo(shards);
    assertThat(lastCount("0", "sink.units")).isPositive().isEqualTo(lastCount("0", "source.slabs"));
    assertThat(lastCount("0", "source.bytes")).isPositive();
    assertThat(lastCount("0", "function.nanos")).isPositive();
    assertThat(lastCount("0", "sink.zeroUnits")).isZero();
  }

  /** The last value that the sink wrote of a counter of the driver or of an executor. */
  private long lastCount(String process, String counter) throws IOException {
    List<Path> files = files("csv", ".*\\." + process + "\\.spark\\.fp4\\." + counter.replace(".", "\\.") + "\\.csv");
    assertThat(files).as("files of %s of %s in %s", counter, process, files("csv", ".*fp4.*")).hasSize(1);
    List<String> lines = Files.readAllLines(files.get(0));
    return Long.parseLong(lines.get(lines.size() - 1).split(",")[1]);
  }

  @Test
  void logIsJsonWhereAskedFor() throws Exception {
    SparkSubmitResult result = SparkSubmit.local(1).run(arguments("--log-format", "json"));

    assertThat(result.status()).as(result.err()).isZero();
    JsonNode last = null;
    for (String line : result.err().lines().toList()) {
      last = JSON.readTree(line);
    }

    int shards = files("output", "model-.*safetensors").size();
    assertThat(last.path("level").asText()).isEqualTo("INFO");
    assertThat(last.path("msg").asText()).startsWith(shards + " of " + shards + " shards, 100 %");
    assertThat(last.path("context").path("shards_done").asInt()).isEqualTo(shards);
    assertThat(last.path("context").path("bytes_per_second").asLong()).isPositive();
  }

  /** Of every command that goes through files: as quantize, each tells how far it is by the same line. */
  @Test
  void conversionAndVerificationHaveTheirLines() throws Exception {
    Path output = folder.resolve("output");
    Path converted = folder.resolve("converted");
    SparkSubmitResult quantized = SparkSubmit.local(1).run(arguments());
    assertThat(quantized.status()).as(quantized.err()).isZero();
    int shards = files("output", "model-.*safetensors").size();

    JsonNode verified = lastOfJson("verify", "--source", SOURCE.toString(), "--quantized", output.toString());
    assertThat(verified.path("msg").asText()).startsWith(shards + " of " + shards + " shards, 100 %, ")
        .endsWith("of checkpoint");
    assertThat(verified.path("context").path("shards_done").asInt()).isEqualTo(shards);

    JsonNode held = lastOfJson("verify", "--manifest", "--quantized", output.toString());
    int files = held.path("context").path("files").asInt();
    assertThat(files).isGreaterThan(shards);
    assertThat(held.path("msg").asText()).startsWith(files + " of " + files + " files, 100 %, ");

    JsonNode convert = lastOfJson("convert", "--input", output.toString(), "--to", "compressed-tensors", "--output",
        converted.toString(), "--max-shard-size", "100KB");
    int written = files("converted", "model-.*safetensors").size();
    assertThat(written).isGreaterThan(1);
    assertThat(convert.path("msg").asText()).startsWith(written + " of " + written + " files, 100 %, ")
        .endsWith("of output");
    assertThat(convert.path("context").path("files_done").asInt()).isEqualTo(written);
  }

  /** The last line that a command writes on standard error, all of which is JSON. */
  private static JsonNode lastOfJson(String... command) throws IOException {
    SparkSubmitResult result = SparkSubmit.local(1)
        .run(Stream.concat(Stream.of(command), Stream.of("--log-format", "json")).toArray(String[]::new));
    assertThat(result.status()).as(result.err()).isZero();
    JsonNode last = null;
    for (String line : result.err().lines().toList()) {
      last = JSON.readTree(line);
    }

    return last;
  }

  @Test
  void failureIsJsonWhereAskedFor() throws Exception {
    SparkSubmitResult result = SparkSubmit.local(1).run("inspect", folder + "/nothing", "--log-format", "json");

    assertThat(result.status()).isEqualTo(1);
    JsonNode line = JSON.readTree(result.err());
    assertThat(line.path("level").asText()).isEqualTo("ERROR");
    assertThat(line.path("msg").asText()).contains(folder + "/nothing");
  }

  @Test
  void quietRunHasItsResultOnly() throws Exception {
    SparkSubmitResult result = SparkSubmit.local(1).conf("spark.fp4.progress", "line").run(arguments("--quiet"));

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.err()).isEmpty();
    assertThat(result.out()).contains("relative error");
  }

  @Test
  void terminalHasOneLineThatIsDrawnAgain() throws Exception {
    Path typescript = folder.resolve("typescript");
    Path launcher = Path.of(System.getProperty("sparkfp4.root")).toRealPath().resolve("sparkfp4");
    String command = launcher + " " + String.join(" ", arguments());
    Process process = new ProcessBuilder("script", "-qec", command, typescript.toString())
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectErrorStream(true)
        .start();
    process.getOutputStream().close();

    assertThat(process.waitFor()).as(Files.readString(typescript)).isZero();
    int shards = files("output", "model-.*safetensors").size();
    assertThat(Files.readString(typescript))
        // a line of the log may come in between
        .containsSubsequence("0 of " + shards + " shards, 0 %\033[K\r", "1 of " + shards + " shards, ")
        .contains(shards + " of " + shards + " shards, 100 %")
        .contains("\033[K\r\033[K\r");
  }

  private String[] arguments(String... more) {
    return Stream.concat(
            Stream.of("quantize", "--input", SOURCE.toString(), "--output", folder.resolve("output").toString(),
                "--max-shard-size", "100KB"),
            Stream.of(more))
        .toArray(String[]::new);
  }

  private List<Path> files(String below, String pattern) throws IOException {
    try (Stream<Path> files = Files.list(folder.resolve(below))) {
      return files.filter(file -> file.getFileName().toString().matches(pattern)).toList();
    }
  }
}
