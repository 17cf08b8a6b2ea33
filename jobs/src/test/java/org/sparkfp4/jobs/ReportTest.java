package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.report.Browser;

/** What {@code quantize} and {@code verify} report of one checkpoint. */
class ReportTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Path SOURCE = CheckpointFiles.golden("qwen3_moe_bf16");

  @TempDir
  private static Path folder;

  private static Path output;

  @BeforeAll
  static void run() throws IOException {
    output = folder.resolve("output");
    Path statistics = Files.createDirectory(folder.resolve("statistics"));
    Files.writeString(statistics.resolve("statistics.json"), """
        {"format": 1, "modules": [], "experts": [
          {"experts": "model.layers.0.mlp.experts", "tokens": [5, 0, 7, 90000], "dead": [1]},
          {"experts": "model.layers.1.mlp.experts", "tokens": [1, 2, 3, 4], "dead": []}]}
        """);
    succeed("quantize", "--input", SOURCE.toString(), "--output", output.toString(),
        "--report", folder.resolve("made.html").toString());
    succeed("verify", "--source", SOURCE.toString(), "--quantized", output.toString(), "--sample", "3",
        "--statistics", statistics.toString(), "--report", folder.resolve("seen.html").toString());
  }

  @Test
  void bothSayTheSameOfTheSameLayers() {
    List<Row> made = table("made");
    List<Row> seen = table("seen");

    assertThat(made).hasSize(24);
    assertThat(seen).hasSize(24);
    for (int i = 0; i < made.size(); i++) {
      Row one = made.get(i);
      Row other = seen.get(i);
      for (String column : List.of("module", "role", "layer", "expert", "projection", "rows", "cols", "source",
          "subnormal_scales", "outlier")) {
        assertThat(one.<Object>getAs(column)).as(column).isEqualTo(other.getAs(column));
      }

      assertThat(one.<Double>getAs("relative_error")).isEqualTo(other.getAs("relative_error"), within(1e-6));
      assertThat(one.<Double>getAs("sum_squares")).isEqualTo(other.getAs("sum_squares"), within(1e-4));
    }

    assertThat(made.get(0).<Object>getAs("module")).isEqualTo("model.layers.0.mlp.experts.0.down_proj");
    assertThat(made.get(0).<Object>getAs("role")).isEqualTo("routed experts");
    assertThat(made).allMatch(row -> row.getAs("cosine") == null && row.getAs("sampled") == null);
    assertThat(seen.stream().filter(row -> row.<Boolean>getAs("sampled"))).hasSize(3);
    assertThat(seen).allMatch(row -> row.<Double>getAs("cosine") > 0.99 && row.<Double>getAs("sqnr") > 20);
  }

  @Test
  void figuresOfTheWhole() throws IOException {
    JsonNode made = JSON.readTree(folder.resolve("made.json").toFile());
    JsonNode seen = JSON.readTree(folder.resolve("seen.json").toFile());

    assertThat(made.path("command").asText()).isEqualTo("quantize");
    assertThat(made.path("options").path("layout").asText()).isEqualTo("modelopt");
    assertThat(made.path("summary").has("differences")).isFalse();
    assertThat(made.path("events").path("keptModules").asLong()).isEqualTo(12);
    assertThat(made.path("stages")).extracting(stage -> stage.path("name").asText()).containsExactly(
        "start, read headers and plan", "read, quantize and write 1 shard", "complete the source's checksums",
        "check what was written and publish it");
    assertThat(made.path("stages").path(1).path("bytesIn").asLong())
        .isEqualTo(made.path("summary").path("bytesIn").asLong()).isEqualTo(bytes(SOURCE));
    assertThat(seen.path("summary").path("differences").asLong(-1)).isZero();
    assertThat(seen.path("summary").path("layers").asInt()).isEqualTo(24);
    assertThat(seen.path("summary").path("relativeError").asDouble())
        .isEqualTo(made.path("summary").path("relativeError").asDouble(), within(1e-6));
    long codes = 0;
    for (JsonNode count : seen.path("codes")) {
      codes += count.asLong();
    }

    assertThat(codes).isEqualTo(seen.path("summary").path("parameters").asLong());
    assertThat(seen.path("deadExperts")).extracting(JsonNode::asText).containsExactly("model.layers.0.mlp.experts.1");
    assertThat(JSON.readTree(output.resolve("sparkfp4-report.json").toFile()).path("kinds"))
        .isEqualTo(made.path("kinds"));
  }

  /** It is made once: what is kept of the run and what was asked for are the same bytes. */
  @Test
  void theOutputHasTheSameReport() {
    assertThat(output.resolve("sparkfp4-report.json")).hasSameBinaryContentAs(folder.resolve("made.json"));
  }

  @Test
  void theFirstReportStaysUnlessItIsLost() throws IOException {
    String[] command = {"quantize", "--input", SOURCE.toString(), "--output", folder.resolve("again").toString()};
    Path report = folder.resolve("again/sparkfp4-report.json");
    succeed(command);
    byte[] first = Files.readAllBytes(report);

    succeed(command);
    assertThat(report).hasBinaryContent(first);

    // as of a run that was stopped between its last shard's place in the index and this
    Files.delete(report);
    succeed(command);
    assertThat(JSON.readTree(report.toFile()).path("kinds")).isEqualTo(JSON.readTree(first).path("kinds"));
  }

  @Test
  void pagesAreDrawn() {
    Browser browser = Browser.required(folder);

    Browser.Visit made = browser.open(folder.resolve("made.html"), 1280, false);
    assertThat(made.console()).isEmpty();
    assertThat(made.dom()).contains("data-charts=\"2\"").contains(">Options<").doesNotContain("class=\"verdict");
    Browser.Visit seen = browser.open(folder.resolve("seen.html"), 1280, false);
    assertThat(seen.console()).isEmpty();
    assertThat(seen.dom())
        .contains("data-charts=\"5\"")
        .contains("</svg>No difference found")
        .contains("1 expert saw none");
  }

  @Test
  void outlierIsNamedThoughNothingIsWrong() throws IOException {
    Path odd = Files.createDirectory(folder.resolve("odd"));
    Files.copy(SOURCE.resolve("config.json"), odd.resolve("config.json"));
    var tensors = CheckpointFiles.read(SOURCE);
    String name = "model.layers.1.mlp.experts.2.down_proj.weight";
    byte[] data = tensors.get(name).data().clone();
    // every weight 1/64 or 1/64 * 1.15625 * 4, between two codes
    for (int i = 0; i < data.length; i += 2) {
      data[i] = (byte) (i % 32 == 0 ? 0x94 : 0x20);
      data[i + 1] = (byte) (i % 32 == 0 ? 0x3E : 0x3D);
    }

    tensors.put(name, new StoredTensor(tensors.get(name).dtype(), tensors.get(name).shape(), data));
    CheckpointFiles.write(odd.resolve("model.safetensors"), tensors);
    Path made = folder.resolve("odd-output");
    succeed("quantize", "--input", odd.toString(), "--output", made.toString(), "--scale-search", "rtn");

    SparkSubmitResult result = succeed("verify", "--source", odd.toString(), "--quantized", made.toString());

    assertThat(result.out())
        .containsPattern("Outlier: model.layers.1.mlp.experts.2.down_proj has a relative error of 0\\.\\d{4}, the "
            + "median of its kind is 0\\.09\\d\\d\n")
        .endsWith("No difference found\n");
  }

  @Test
  void finishedCheckpointIsReportedAgain() throws IOException {
    var before = Outputs.identities(output, "");

    succeed("quantize", "--input", SOURCE.toString(), "--output", output.toString(),
        "--report", folder.resolve("again.html").toString());

    assertThat(table("again")).isEqualTo(table("made"));
    assertThat(Outputs.identities(output, "")).isEqualTo(before);
  }

  @Test
  void wrongPlaceIsRefusedBeforeAnyWork() throws IOException {
    Path never = folder.resolve("never");
    SparkSubmitResult ending = new InProcess().run(
        "quantize", "--input", SOURCE.toString(), "--output", never.toString(), "--report", "page.pdf");
    assertThat(ending.status()).isEqualTo(2);
    assertThat(ending.err()).startsWith("Invalid --report: page.pdf, must be the name of a file that ends in .html");

    Files.createDirectory(folder.resolve("mine.parquet"));
    SparkSubmitResult foreign = new InProcess().run("quantize", "--input", SOURCE.toString(), "--output",
        never.toString(), "--report", folder.resolve("mine.html").toString());
    assertThat(foreign.status()).isEqualTo(1);
    assertThat(foreign.err()).isEqualTo("Cannot write the report " + folder.resolve("mine.html")
        + ": beside it is mine.parquet, which is of no report; choose another name\n");
    assertThat(never).doesNotExist();

    for (Path page : List.of(SOURCE.resolve("config.html"), output.resolve("config.html"))) {
      SparkSubmitResult inside = new InProcess().run("quantize", "--input", SOURCE.toString(), "--output",
          output.toString(), "--report", page.toString());
      assertThat(inside.status()).isEqualTo(1);
      assertThat(inside.err()).startsWith("Cannot write the report to ").contains("it is in the checkpoint");
      assertThat(page).doesNotExist();
    }

    Files.writeString(folder.resolve("letter.html"), "<p>Dear all</p>");
    Files.createDirectory(folder.resolve("letter.parquet"));
    SparkSubmitResult letter = new InProcess().run("quantize", "--input", SOURCE.toString(), "--output",
        never.toString(), "--report", folder.resolve("letter.html").toString());
    assertThat(letter.err()).isEqualTo("Cannot write the report " + folder.resolve("letter.html")
        + ": what is there is of no report; choose another name\n");

    SparkSubmitResult both = new InProcess().run("verify", "--manifest", "--quantized", output.toString(), "--layers");
    assertThat(both.status()).isEqualTo(2);

    SparkSubmitResult nothing = new InProcess().run("verify", "--source", SOURCE.toString(), "--quantized",
        output.toString(), "--statistics", folder.toString());
    assertThat(nothing.status()).isEqualTo(1);
    assertThat(nothing.err()).isEqualTo("Cannot read statistics from " + folder + ": it has no statistics.json\n");
  }

  @ParameterizedTest
  @ValueSource(strings = {"/proc/r.html", "/proc/below/it/r.html"})
  void folderThatTakesNoFileIsRefusedBeforeAnyWork(String page) {
    Path never = folder.resolve("never made");
    SparkSubmitResult quantized = new InProcess().run(
        "quantize", "--input", SOURCE.toString(), "--output", never.toString(), "--report", page);
    SparkSubmitResult verified = new InProcess().run(
        "verify", "--source", SOURCE.toString(), "--quantized", output.toString(), "--report", page);

    for (SparkSubmitResult result : List.of(quantized, verified)) {
      assertThat(result.status()).isEqualTo(1);
      assertThat(result.out()).isEmpty();
      assertThat(result.err()).startsWith("Cannot write the report " + page + ": no file can be made in file:/proc (")
          .hasLineCount(1);
    }

    assertThat(never).doesNotExist();
  }

  @Test
  void placeOfAReportIsLeftAsItWas() throws IOException {
    Path empty = Files.createDirectory(folder.resolve("to report to"));
    SparkSubmitResult result = succeed("quantize", "--input", SOURCE.toString(), "--output",
        folder.resolve("planned").toString(), "--dry-run", "--report", empty.resolve("below/r.html").toString());

    assertThat(result.out()).contains("to NVFP4");
    assertThat(empty).isEmptyDirectory();
  }

  private static List<Row> table(String name) {
    return TestSpark.session().read().parquet(folder.resolve(name + ".parquet").toString())
        .orderBy("module").collectAsList();
  }

  private static long bytes(Path checkpoint) throws IOException {
    return CheckpointFiles.read(checkpoint).values().stream().mapToLong(tensor -> tensor.data().length).sum();
  }

  private static SparkSubmitResult succeed(String... arguments) {
    SparkSubmitResult result = new InProcess().run(arguments);
    assertThat(result.status()).as(result.out() + result.err()).isZero();
    return result;
  }
}
