package org.sparkfp4.output;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.sparkfp4.fuzz.Hostile;
import org.sparkfp4.plan.PlanOptions;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Selection;

/**
 * Any files as those that a run left in its output: they are believed or not, and when all that a run wrote is removed,
 * nothing goes that is not directly in the folder.
 */
class OutputFuzz {
  private static final QuantizationPlan PLAN = new QuantizationPlan(
      "f", "file:/source", new PlanOptions("modelopt", "rtn", "experts", false, 0,
          new Selection(List.of(), List.of(), false, false), false, null),
      "qwen3_moe", 1 << 20, List.of(), List.of(), List.of(), List.of());

  private Path folder;
  private RawLocalFileSystem fs;

  @BeforeEach
  void makeFolder() throws IOException {
    folder = Files.createTempDirectory("output-fuzz-");
    fs = new RawLocalFileSystem();
    fs.initialize(java.net.URI.create("file:///"), new Configuration());
  }

  @FuzzTest
  void leftovers(byte[] data) throws IOException {
    byte[][] files = Hostile.split(data, 3);
    Path output = Files.createDirectories(folder.resolve("output"));
    Path beside = Files.writeString(folder.resolve("beside.json"), "mine");
    Path below = Files.createDirectories(output.resolve("below"));
    Files.writeString(below.resolve("mine.json"), "mine");
    Files.write(output.resolve(Manifest.FILE), files[0]);
    Files.write(Files.createDirectories(output.resolve("_sparkfp4/shards")).resolve("00000.json"), files[1]);
    Files.write(output.resolve(OutputFolder.INDEX), files[2]);
    OutputFolder out = new OutputFolder(fs, new org.apache.hadoop.fs.Path(output.toString()));

    Hostile.read(data.length, () -> {
      out.requireOwn(RunKind.CHECKPOINT);
      out.finished(PLAN);
      out.isComplete(PLAN);
      out.requireSamePlan(PLAN, new Configuration(false));
    });
    Hostile.read(data.length, out::clear);

    assertThat(beside).hasContent("mine");
    assertThat(below.resolve("mine.json")).hasContent("mine");
  }

  @AfterEach
  void removeFolder() throws IOException {
    fs.delete(new org.apache.hadoop.fs.Path(folder.toString()), true);
  }
}
