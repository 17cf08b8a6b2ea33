package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The notebooks, run headless from their first cell to their last. */
class NotebooksIT {
  @TempDir
  private Path out;

  @ParameterizedTest
  @CsvSource({
    "expert-in-java.ipynb,   2, '131,072 weights decoded, 0 differ'",
    "layers-in-pyspark.ipynb, 3, 'largest_difference'",
    "key-cache.ipynb,        2, 'best tokens'",
  })
  void runsFromItsFirstCellToItsLast(String name, int plots, String said) throws Exception {
    Path committed = Notebooks.folder().resolve(name);
    SparkSubmitResult result = execute(name);
    assertThat(result.status()).as(result.err()).isZero();

    List<JsonNode> fresh = codeCells(out.resolve(name));
    List<JsonNode> kept = codeCells(committed);
    assertThat(fresh).extracting(cell -> cell.path("source")).containsExactlyElementsOf(
        kept.stream().map(cell -> cell.path("source")).toList());
    for (List<JsonNode> cells : List.of(fresh, kept)) {
      assertThat(cells).allSatisfy(cell -> assertThat(cell.path("execution_count").isInt()).isTrue());
      List<JsonNode> outputs = cells.stream().flatMap(cell -> stream(cell.path("outputs"))).toList();
      assertThat(outputs).noneMatch(output -> output.path("output_type").asText().equals("error"));
      assertThat(outputs).filteredOn(output -> output.path("data").has("image/png")).hasSize(plots);
      assertThat(outputs.toString()).contains(said);
    }
  }

  /** Small, and of no machine: what is committed was looked at, and says nothing of where. */
  @Test
  void outputsThatAreCommittedAreSmallAndOfNoMachine() throws IOException {
    try (Stream<Path> files = Files.list(Notebooks.folder())) {
      List<Path> notebooks = files.filter(file -> file.toString().endsWith(".ipynb")).toList();
      assertThat(notebooks).hasSize(3);
      for (Path notebook : notebooks) {
        assertThat(Files.size(notebook)).isLessThan(400_000);
        assertThat(Files.readString(notebook)).doesNotContain("file:/")
            .doesNotContain(Path.of("").toAbsolutePath().toString()).doesNotContain("/root/")
            .doesNotContain("/home/");
      }
    }
  }

  @Test
  void aCellThatFailsIsTheExitStatus() throws Exception {
    Path broken = out.resolve("broken.ipynb");
    Files.writeString(broken, """
        {"cells": [{"cell_type": "code", "execution_count": null, "id": "a", "metadata": {}, "outputs": [],
          "source": "raise ValueError('on purpose')"}],
         "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
         "nbformat": 4, "nbformat_minor": 5}
        """);
    Notebooks.folder();
    SparkSubmitResult result = execute(broken.toString());
    assertThat(result.status()).isNotZero();
    assertThat(result.err()).contains("on purpose");
  }

  private SparkSubmitResult execute(String notebook) throws IOException, InterruptedException {
    Path said = out.resolve("said");
    Path errors = out.resolve("errors");
    Path launcher = Notebooks.folder().resolveSibling("sparkfp4");
    int status = new ProcessBuilder(launcher.toString(), "notebook", "--execute", out.toString(), notebook)
        .redirectOutput(said.toFile())
        .redirectError(errors.toFile())
        .start()
        .waitFor();
    return new SparkSubmitResult(status, Files.readString(said), Files.readString(errors));
  }

  private static List<JsonNode> codeCells(Path notebook) throws IOException {
    JsonNode cells = new ObjectMapper().readTree(notebook.toFile()).path("cells");
    return stream(cells).filter(cell -> cell.path("cell_type").asText().equals("code")).toList();
  }

  private static Stream<JsonNode> stream(JsonNode array) {
    List<JsonNode> elements = new ArrayList<>();
    array.forEach(elements::add);
    return elements.stream();
  }
}
