package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.FreeSpace;
import org.sparkfp4.layouts.IndexFile;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;

class OutputFolderTest {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Configuration CONF = new Configuration();
  private static final String SHARD = "model-00001-of-00002.safetensors";

  @TempDir private java.nio.file.Path temporary;

  private FileSystem fs;
  private OutputFolder output;

  @BeforeEach
  void open() throws IOException {
    Path path = new Path(temporary.toUri());
    fs = Storage.of(path, CONF, "auto").fs();
    output = new OutputFolder(fs, path);
  }

  @Test
  void emptyOrMissingFolderIsOwn() throws IOException {
    output.requireOwn(RunKind.CHECKPOINT);
    new OutputFolder(fs, new Path(output.path(), "none")).requireOwn(RunKind.CHECKPOINT);
  }

  @Test
  void foreignFilesAreNeverTouched() throws IOException {
    put("weights.safetensors", "x");
    assertThatThrownBy(() -> output.requireOwn(RunKind.CHECKPOINT))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("it is not empty and holds no run of Spark FP4 (it has weights.safetensors)");
  }

  @Test
  void otherOptionsAreRefusedWithWhatDiffers() throws IOException {
    PlanFile.write(CONF, output.staging().plan(), plan("a", "experts", 1));
    output.requireSamePlan(plan("a", "experts", 1), CONF);
    assertThatThrownBy(() -> output.requireSamePlan(plan("b", "linears", 1), CONF))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("a begun run of another plan")
        .hasMessageContaining("(--targets experts there, linears now)")
        .hasMessageContaining("--overwrite");
    assertThatThrownBy(() -> output.requireSamePlan(plan("b", "experts", 2), CONF))
        .hasMessageContaining("source file model.safetensors changed");
  }

  @Test
  void finishedCheckpointOfAnotherPlanIsRefused() throws IOException {
    QuantizationPlan plan = plan("a", "experts", 1);
    Manifest manifest =
        new Manifest(
            "p", "a", plan.input(), "f", plan.options(), plan.sources(), List.of(record(0, "a", 4)), List.of());
    Files.write(temporary.resolve(Manifest.FILE), JSON.writeValueAsBytes(manifest));
    output.requireOwn(RunKind.CHECKPOINT);
    output.requireSamePlan(plan, CONF);
    assertThatThrownBy(() -> output.requireSamePlan(plan("b", "mlp", 1), CONF))
        .hasMessageContaining("it holds a checkpoint of another plan");
  }

  @Test
  void aCheckpointThatDoesNotSayWhatWasAskedForIsRefused() throws IOException {
    QuantizationPlan plan = plan("a", "experts", 1);
    Manifest manifest =
        new Manifest("p", "a", plan.input(), "f", null, plan.sources(), List.of(record(0, "a", 4)), List.of());
    Files.write(temporary.resolve(Manifest.FILE), JSON.writeValueAsBytes(manifest));
    assertThatThrownBy(() -> output.requireSamePlan(plan("b", "experts", 2), CONF))
        .hasMessageContaining("it holds a checkpoint of another plan")
        .hasMessageContaining("source file model.safetensors changed");
    assertThatThrownBy(() -> output.requireSamePlan(plan("b", "experts", 1), CONF))
        .hasMessageContaining("what was asked for is not recorded there");
  }

  @Test
  void shardsAreFinishedWhenRecordedForThisPlanAndOfTheRecordedLength() throws IOException {
    QuantizationPlan plan = plan("a", "experts", 1);
    output.staging().write(record(0, "a", 4));
    assertThat(output.finished(plan)).as("the shard is gone").isEmpty();
    put(SHARD, "123");
    assertThat(output.finished(plan)).as("the shard is short").isEmpty();
    put(SHARD, "1234");
    assertThat(output.finished(plan)).containsOnlyKeys(0);
    assertThat(output.finished(plan("b", "mlp", 1))).as("another plan").isEmpty();
    put("_sparkfp4/shards/00000.json", "{\"shard\":");
    assertThat(output.finished(plan)).as("the record was cut short by a crash").isEmpty();
  }

  @Test
  void whatIsNoRecordOrNoPlanIsWrittenAgain() throws IOException {
    QuantizationPlan plan = plan("a", "experts", 1);
    put(SHARD, "1234");
    for (String record : List.of("", "null", "{}", "{\"shard\":0,\"layers\":[]}", "[]")) {
      put("_sparkfp4/shards/00000.json", record);
      assertThat(output.finished(plan)).as(record).isEmpty();
    }

    for (String begun : List.of("", "null", "{}", "{\"fingerprint\":")) {
      put("_sparkfp4/plan.json", begun);
      output.requireSamePlan(plan, CONF);
      assertThat(output.staging().begun(CONF)).as(begun).isNull();
    }
  }

  @Test
  void checkpointIsCompleteWithAllThatWasWritten() throws IOException {
    QuantizationPlan plan = plan("a", "experts", 1);
    assertThat(output.isComplete(plan)).isFalse();
    Manifest manifest =
        new Manifest(
            "p", "a", plan.input(), "f", plan.options(), plan.sources(), List.of(record(0, "a", 4)),
            List.of("config.json"));
    Files.write(temporary.resolve(Manifest.FILE), JSON.writeValueAsBytes(manifest));
    put(SHARD, "1234");
    put("config.json", "{}");
    put(OutputFolder.INDEX, IndexFile.of(plan).toPrettyString());
    assertThat(output.isComplete(plan)).isTrue();
    assertThat(output.isComplete(plan("b", "experts", 1))).as("another plan").isFalse();

    put(OutputFolder.INDEX, "{\"weight_map\":");
    assertThat(output.isComplete(plan)).as("the index is damaged").isFalse();
    put(OutputFolder.INDEX, IndexFile.of(plan).toString());
    Files.delete(temporary.resolve("config.json"));
    assertThat(output.isComplete(plan)).as("config.json is gone").isFalse();
    put("config.json", "{}");
    Files.delete(temporary.resolve(SHARD));
    assertThat(output.isComplete(plan)).as("a shard is gone").isFalse();
  }

  @Test
  void fileIsNoFolder() throws IOException {
    put("file", "x");
    OutputFolder file = new OutputFolder(fs, new Path(output.path(), "file"));
    assertThatThrownBy(() -> file.requireOwn(RunKind.CHECKPOINT))
        .isInstanceOf(IOException.class)
        .hasMessage("Cannot write to " + file.path() + ": it is a file; choose an empty folder, or one to be made");
  }

  @Test
  void recordsOfAFinishedCheckpointCountToo() throws IOException {
    QuantizationPlan plan = plan("a", "experts", 1);
    Manifest manifest =
        new Manifest(
            "p", "a", plan.input(), "f", plan.options(), plan.sources(), List.of(record(0, "a", 4)), List.of());
    Files.write(temporary.resolve(Manifest.FILE), JSON.writeValueAsBytes(manifest));
    put(SHARD, "1234");
    assertThat(output.finished(plan)).containsOnlyKeys(0);
  }

  @Test
  void clearingRemovesWhatRunsWroteAndNothingElse() throws IOException {
    put(SHARD, "1234");
    put(OutputFolder.INDEX, "{}");
    put("notes.txt", "mine");
    put("hf_quant_config.json", "{}");
    QuantizationPlan plan = plan("a", "experts", 1);
    Manifest manifest =
        new Manifest(
            "p", "a", plan.input(), "f", plan.options(), plan.sources(), List.of(), List.of("hf_quant_config.json"));
    Files.write(temporary.resolve(Manifest.FILE), JSON.writeValueAsBytes(manifest));
    put("_sparkfp4/attempts/00001-x-1", "half");
    put("_sparkfp4/lock", "{}");
    output.staging().write(record(0, "a", 4));
    PlanFile.write(CONF, output.staging().plan(), plan);
    output.clear();
    try (var files = Files.walk(temporary)) {
      assertThat(files.filter(Files::isRegularFile).map(file -> temporary.relativize(file).toString()))
          .containsExactlyInAnyOrder("notes.txt", "_sparkfp4/lock");
    }
  }

  @Test
  void strayShardsOfEarlierPlansAreRemoved() throws IOException {
    put(SHARD, "1234");
    put("model-00001-of-00009.safetensors", "old");
    output.removeStrayShards(plan("a", "experts", 1));
    assertThat(Set.of(temporary.toFile().list())).containsExactly(SHARD);
  }

  @Test
  void freeSpaceIsAskedForTheNearestFolderThatExists() throws IOException {
    Path deep = new Path(output.path(), "a/b/c");
    FreeSpace.require(fs, deep, 1);
    assertThatThrownBy(() -> FreeSpace.require(fs, deep, Long.MAX_VALUE))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("9,223,372,036,854,775,807 bytes are needed");
  }

  private void put(String name, String content) throws IOException {
    java.nio.file.Path file = temporary.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, content);
  }

  private static ShardRecord record(int shard, String fingerprint, long length) {
    return new ShardRecord(
        shard, SHARD, length, "00", fingerprint, List.of(new LayerError("m", 1, 4, 0.01, 0, 0, 0, 0)), List.of());
  }

  private static QuantizationPlan plan(String fingerprint, String targets, long modified) {
    return new QuantizationPlan(
        fingerprint,
        "file:/source",
        new PlanOptions("modelopt", "rtn", targets, false, 0),
        "qwen3_moe",
        1 << 28,
        List.of(new SourceFile("model.safetensors", 100, modified)),
        List.of(new OutputShard(0, SHARD, 0, List.of())),
        List.of(),
        List.of());
  }
}
