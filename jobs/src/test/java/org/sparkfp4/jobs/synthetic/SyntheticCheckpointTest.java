package org.sparkfp4.jobs.synthetic;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.safetensors.DType;

class SyntheticCheckpointTest {
  private static final ModelShape SMALL = new ModelShape(2, 4, 128, 64, 256);

  @TempDir
  private Path folder;

  @Test
  void bytesDependOnSeedAloneNotOnTasks() throws IOException {
    write("one", "local[1]", 7, 64 << 10);
    write("two", "local[2]", 7, 64 << 10);
    write("other", "local[2]", 8, 64 << 10);

    assertThat(contents("two")).isEqualTo(contents("one")).hasSizeGreaterThan(6);
    assertThat(contents("other").keySet()).isEqualTo(contents("one").keySet());
    assertThat(tensors("other")).isNotEqualTo(tensors("one"));
  }

  @Test
  void bytesOfTensorDependOnNameNotOnShard() throws IOException {
    write("many", "local[2]", 7, 64 << 10);
    write("one", "local[2]", 7, 1 << 30);

    assertThat(tensors("one")).isEqualTo(tensors("many"));
  }

  @Test
  void expertsDifferInScale() throws IOException {
    write("checkpoint", "local[2]", 7, 1 << 30);

    List<Float> amaxes = new ArrayList<>();
    tensors("checkpoint").forEach((name, values) -> {
      if (name.contains(".experts.")) {
        amaxes.add(amax(values));
      }
    });

    assertThat(amaxes).hasSize(24).doesNotHaveDuplicates().allSatisfy(amax -> assertThat(amax).isBetween(0.01f, 2f));
    assertThat(amaxes.stream().max(Float::compare).orElseThrow() / amaxes.stream().min(Float::compare).orElseThrow())
        .isGreaterThan(3f);
  }

  @Test
  void folderWithFilesIsRefused() throws IOException {
    Files.writeString(folder.resolve("something"), "");

    assertThatThrownBy(() -> write("", "local[1]", 0, 1 << 30))
        .isInstanceOf(IOException.class)
        .hasMessage("Cannot write to file:" + folder + ": it is not empty. Remove it or name another --output.");
  }

  @ParameterizedTest
  @EnumSource(SyntheticFamily.class)
  void sizeIsWhatWasAskedFor(SyntheticFamily family) {
    for (long bytes : new long[] {200L << 20, 16L << 30, 700L << 30}) {
      ModelShape shape = ModelSizing.fit(family, bytes, DType.BF16);

      SyntheticCheckpoint checkpoint = new SyntheticCheckpoint(family, shape, DType.BF16, 0, 4L << 30);

      assertThat(checkpoint.dataBytes() / (double) bytes).as("%s of %s", shape, bytes).isBetween(0.95, 1.05);
    }
  }

  @Test
  void realModelHasItsRealSize() {
    assertThat(new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, SyntheticFamily.QWEN3_MOE.shape(), DType.BF16, 0,
        4L << 30).dataBytes() / 1e9).isBetween(60.0, 62.0);
    assertThat(new SyntheticCheckpoint(SyntheticFamily.DEEPSEEK_V3, SyntheticFamily.DEEPSEEK_V3.shape(), DType.BF16, 0,
        4L << 30).dataBytes() / 1e9).isBetween(1330.0, 1380.0);
  }

  @Test
  void sizeBelowSmallestIsRefused() {
    assertThatThrownBy(() -> ModelSizing.fit(SyntheticFamily.MIXTRAL, 1000, DType.BF16))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageMatching("Invalid size: 1000 bytes \\(the smallest mixtral model has \\d+\\)");
  }

  private void write(String name, String master, long seed, long shardLimit) throws IOException {
    try (SparkSession spark = SparkSession.builder().master(master).appName("synthesize").getOrCreate()) {
      new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, SMALL, DType.BF16, seed, shardLimit)
          .write(spark, new org.apache.hadoop.fs.Path(folder.resolve(name).toString()));
    }
  }

  private Map<String, String> contents(String name) throws IOException {
    try (Stream<Path> files = Files.list(folder.resolve(name))) {
      return files.collect(Collectors.toMap(
          file -> file.getFileName().toString(), SyntheticCheckpointTest::text, (a, b) -> a, TreeMap::new));
    }
  }

  /** The tensors' bytes by name, each byte a char. */
  private Map<String, String> tensors(String name) throws IOException {
    Map<String, String> tensors = new TreeMap<>();
    Checkpoint checkpoint = Checkpoint.open(new Configuration(), folder.resolve(name).toString());
    for (LocatedTensor tensor : checkpoint.tensors()) {
      String file = text(folder.resolve(name).resolve(tensor.file()));
      tensors.put(tensor.name(), file.substring((int) tensor.offset(), (int) (tensor.offset() + tensor.length())));
    }

    return tensors;
  }

  private static float amax(String bf16) {
    float amax = 0;
    for (int i = 0; i < bf16.length(); i += 2) {
      amax = Math.max(amax, Math.abs(BFloat16.toFloat((short) (bf16.charAt(i) | bf16.charAt(i + 1) << 8))));
    }

    return amax;
  }

  private static String text(Path file) {
    try {
      return Files.readString(file, StandardCharsets.ISO_8859_1);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
