package org.sparkfp4.convert;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.SourceFiles;
import org.sparkfp4.output.SourcePieces;
import org.sparkfp4.output.Storage;
import org.sparkfp4.progress.ProgressView;

/** How often a conversion reads its source. */
class SourceReadsTest {
  private static final int EXPERTS = 128;
  private static final int HIDDEN = 128;
  private static final int WIDTH = 64;
  private static final int PROJECTIONS = 3;

  @TempDir
  private Path folder;

  @BeforeEach
  void forgetReads() {
    CountedFileSystem.reads();
  }

  private static ExpertFiles files() {
    return ExpertFiles.of(true, EXPERTS, HIDDEN, WIDTH);
  }

  @Test
  void scalarsThatLieTogetherAreReadAtOnce() throws IOException {
    assertThat(readScalars(files().scalarsFirst())).hasSize(1).allMatch(read -> read.length() == 4 * EXPERTS * PROJECTIONS);
  }

  @Test
  void scalarsThatLieApartAreReadEach() throws IOException {
    assertThat(readScalars(files())).hasSize(EXPERTS * PROJECTIONS).allMatch(read -> read.length() == 4);
  }

  private List<CountedFileSystem.Read> readScalars(ExpertFiles files) throws IOException {
    Configuration conf = CountedFileSystem.register(new Configuration());
    Checkpoint checkpoint = Checkpoint.open(conf, CountedFileSystem.path(files.global(5, "up_proj", 0.25f).write(folder)));
    ExpertLayer layer = SourceModel.of(conf, checkpoint).layers().get(0);
    CountedFileSystem.reads();
    try (SourceFiles read = new SourceFiles(
        checkpoint.path().toString(), checkpoint.sourceFiles(), conf, new SourcePieces())) {
      ExpertReader reader = ExpertReader.of(layer, new SourceBytes(read, read, null));
      for (int e = 0; e < EXPERTS; e++) {
        for (int p = 0; p < PROJECTIONS; p++) {
          assertThat(reader.global(e, p)).isEqualTo(GlobalScale.of(false, e == 5 && p == 1 ? 0.25f : 0.001f));
        }
      }
    }

    return CountedFileSystem.reads();
  }

  /** Written by parts or by files, a layer's scalars are read for its tensors and for the metadata, and no more. */
  @ParameterizedTest
  @CsvSource({"trt-edge-llm-sm110", "marlin-vllm"})
  void conversionReadsTensorsOnceAndScalarsTwice(String layout) throws IOException {
    Path source = files().scalarsFirst().write(folder.resolve("source"));
    SparkSession spark = TestSpark.session();
    CountedFileSystem.register(spark.sparkContext().hadoopConfiguration());
    Configuration conf = spark.sessionState().newHadoopConf();
    Checkpoint checkpoint = Checkpoint.open(conf, CountedFileSystem.path(source));
    org.apache.hadoop.fs.Path output = new org.apache.hadoop.fs.Path(folder.resolve("output").toUri());
    Storage storage = Storage.of(output, conf, "auto");
    ConvertJob job = ConvertJob.plan(spark, checkpoint, new ConvertRequest(layout, null, 0),
        new OutputFolder(storage.fs(), output), "auto", KernelChoice.cpu("auto"), "a test");
    CountedFileSystem.reads();

    job.run(false, ProgressView.of("off"));

    List<CountedFileSystem.Read> reads = CountedFileSystem.reads().stream()
        .filter(read -> read.file().equals(ExpertFiles.SHARD))
        .toList();
    LocatedTensor first = checkpoint.tensor(ExpertFiles.PATH + ".0.gate_proj.weight_scale_2").orElseThrow();
    assertThat(reads.stream().filter(read -> read.offset() == first.offset())).hasSize(2);
    // codes and scales of each matrix
    long tensors = reads.stream().filter(read -> read.offset() > first.offset()).count();
    assertThat(tensors).isEqualTo(2 * EXPERTS * PROJECTIONS);
  }
}
