package org.sparkfp4.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.safetensors.DType;
import org.sparkfp4.safetensors.InvalidSafetensorsException;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

class CheckpointTest {
  private static final Path GOLDEN = Path.of("src/test/resources/golden/qwen3_moe_bf16");
  private static final String FIRST = "model-00001-of-00003.safetensors";
  private static final String SECOND = "model-00002-of-00003.safetensors";

  @TempDir
  Path temporary;

  private Path folder;

  @BeforeEach
  void copyGolden() throws IOException {
    folder = Files.createDirectory(temporary.resolve("model"));
    try (Stream<Path> files = Files.list(GOLDEN)) {
      for (Path file : files.toList()) {
        Files.copy(file, folder.resolve(file.getFileName()));
      }
    }
  }

  @Test
  void tensorsAreInTheOrderOfTheirBytes() throws IOException {
    Checkpoint checkpoint = open();
    assertThat(checkpoint.shards()).extracting(shard -> shard.getPath().getName())
        .containsExactly(FIRST, SECOND, "model-00003-of-00003.safetensors");
    assertThat(checkpoint.shards().get(1).getLen()).isEqualTo(Files.size(folder.resolve(SECOND)));
    assertThat(checkpoint.sourceFiles().get(1).modified())
        .isEqualTo(Files.getLastModifiedTime(folder.resolve(SECOND)).toMillis());
    List<LocatedTensor> tensors = checkpoint.tensors();
    assertThat(tensors.get(0).name()).isEqualTo("lm_head.weight");
    for (int i = 1; i < tensors.size(); i++) {
      if (tensors.get(i).file().equals(tensors.get(i - 1).file())) {
        assertThat(tensors.get(i).offset()).isEqualTo(tensors.get(i - 1).offset() + tensors.get(i - 1).length());
      } else {
        assertThat(tensors.get(i).file()).isGreaterThan(tensors.get(i - 1).file());
      }
    }

    LocatedTensor up = checkpoint.tensor("model.layers.0.mlp.experts.0.up_proj.weight").orElseThrow();
    assertThat(up.shape()).containsExactly(64L, 128L);
    assertThat(up.rows()).isEqualTo(64);
    assertThat(checkpoint.tensor("no.such")).isEmpty();
    assertThat(checkpoint.config().path("model_type").asText()).isEqualTo("qwen3_moe");
  }

  @Test
  void sideFilesAndStrays() throws IOException {
    for (String name : List.of("tokenizer.json", "LICENSE", "modeling_x.py", "README.md", ".gitattributes", "old.bin",
        "pytorch_model.bin.index.json", "a.pt", "b.pth", "c.gguf", ".config.json.crc", "consolidated.safetensors",
        "hf_quant_config.json", "sparkfp4-manifest.json", "sparkfp4-manifest.json.sha256", "sparkfp4-report.json",
        "_sparkfp4")) {
      Files.writeString(folder.resolve(name), "{}");
    }

    Files.createDirectory(folder.resolve("original"));
    Checkpoint checkpoint = open();
    assertThat(checkpoint.sideFiles()).extracting(file -> file.getPath().getName())
        .containsExactly("LICENSE", "config.json", "modeling_x.py", "tokenizer.json");
    assertThat(checkpoint.strayShards()).containsExactly("consolidated.safetensors");
  }

  @Test
  void configMayHaveInfinitiesAsPythonWritesThem() throws IOException {
    Files.writeString(folder.resolve("config.json"), "{\"time_step_limit\": [0.0, Infinity], \"x\": NaN}");
    assertThat(open().config().path("time_step_limit").path(1).doubleValue()).isInfinite();

    Files.writeString(folder.resolve("config.json"), "{} {}");
    assertRefused(folder, "config.json is no JSON");
  }

  @Test
  void loneShardNeedsNoIndexAndNoConfig() throws IOException {
    Path lone = Files.createDirectory(temporary.resolve("lone"));
    Files.copy(folder.resolve(FIRST), lone.resolve("weights.safetensors"));
    Checkpoint checkpoint = Checkpoint.open(new Configuration(), lone.toString());
    assertThat(checkpoint.tensor("lm_head.weight")).isPresent();
    assertThat(checkpoint.config().isMissingNode()).isTrue();

    Files.copy(folder.resolve(SECOND), lone.resolve("other.safetensors"));
    assertRefused(lone, "it has 2 .safetensors files, other.safetensors and on, but no model.safetensors.index.json");

    Files.copy(folder.resolve(SECOND), lone.resolve("model.safetensors"));
    Checkpoint named = Checkpoint.open(new Configuration(), lone.toString());
    assertThat(named.shards()).hasSize(1);
    assertThat(named.strayShards()).containsExactly("other.safetensors", "weights.safetensors");
  }

  @Test
  void singleFile() throws IOException {
    Checkpoint checkpoint = Checkpoint.open(new Configuration(), folder.resolve(SECOND).toString());
    assertThat(checkpoint.shards()).hasSize(1);
    assertThat(checkpoint.tensors()).allMatch(tensor -> tensor.file().equals(SECOND));
    assertThat(checkpoint.path().getName()).isEqualTo("model");
  }

  @Test
  void symbolicLinksAreFollowed() throws IOException {
    Path snapshot = Files.createDirectories(temporary.resolve("hub/snapshots/abc"));
    Path blobs = Files.createDirectories(temporary.resolve("hub/blobs"));
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.move(file, blobs.resolve("blob-" + file.getFileName()));
        Files.createSymbolicLink(
            snapshot.resolve(file.getFileName()), Path.of("../../blobs/blob-" + file.getFileName()));
      }
    }

    Checkpoint checkpoint = Checkpoint.open(new Configuration(), snapshot.toString());
    assertThat(checkpoint.shards().get(0).getLen()).isEqualTo(Files.size(blobs.resolve("blob-" + FIRST)));
    assertThat(checkpoint.tensor("lm_head.weight")).isPresent();

    Files.delete(blobs.resolve("blob-" + SECOND));
    assertRefused(snapshot, "names " + SECOND + " (tensor ");
  }

  @Test
  void missingShard() throws IOException {
    Files.delete(folder.resolve(SECOND));
    assertRefused(folder, "model.safetensors.index.json names " + SECOND + " (tensor ");
    assertRefused(folder, "which is not in the folder; 1 of 3 shards missing");
  }

  @Test
  void nothingThere() throws IOException {
    assertRefused(temporary.resolve("none"), "there is no such folder or file");
    assertRefused(Files.createDirectory(temporary.resolve("empty")), "it has no .safetensors file");
  }

  @ParameterizedTest
  @ValueSource(strings = {"../x.safetensors", "/etc/passwd", "a/b.safetensors", "a\\\\b", "..", ".", "", "C:x",
    "a\\u0000b"})
  void shardOutsideTheFolder(String file) throws IOException {
    Files.writeString(folder.resolve(CheckpointIndex.NAME), "{\"weight_map\": {\"t\": \"" + file + "\"}}");
    assertRefused(folder, "maps tensor t to \"");
    assertRefused(folder, "which is no name of a file directly in the folder");
  }

  @ParameterizedTest
  @ValueSource(strings = {"[]", "{}", "{\"weight_map\": {}}", "{\"weight_map\": []}", "{\"weight_map\": {\"a\": 1}}",
    "{\"weight_map\": {\"a\": \"x\"}, \"weight_map\": {\"a\": \"x\"}}",
    "{\"weight_map\": {\"a\": \"x\", \"a\": \"x\"}}",
    "{\"weight_map\": {\"a\": \"x\"}} {}", "{\"weight_map\"", ""})
  void brokenIndex(String index) throws IOException {
    Files.writeString(folder.resolve(CheckpointIndex.NAME), index);
    assertRefused(folder, CheckpointIndex.NAME);
  }

  @Test
  void staleIndex() throws IOException {
    Path index = folder.resolve(CheckpointIndex.NAME);
    String good = Files.readString(index);

    Files.writeString(index, good.replace("\"lm_head.weight\"", "\"head.weight\""));
    assertRefused(folder, "maps tensor head.weight to " + FIRST + ", which does not hold it");

    Files.writeString(index, good.replaceFirst("(\"lm_head.weight\": )\"[^\"]+\",", "$1\"" + SECOND + "\","));
    assertRefused(folder, "maps tensor lm_head.weight to " + SECOND + ", but it is in " + FIRST);

    Files.writeString(index, good.replaceFirst("\"lm_head.weight\": \"[^\"]+\",", ""));
    assertRefused(folder, "lacks tensor lm_head.weight, which is in " + FIRST);
  }

  @Test
  void oneNameInTwoShards() throws IOException {
    write(folder.resolve("a.safetensors"), "t");
    write(folder.resolve("b.safetensors"), "t", "u");
    Files.writeString(folder.resolve(CheckpointIndex.NAME),
        "{\"weight_map\": {\"t\": \"a.safetensors\", \"u\": \"b.safetensors\"}}");
    assertRefused(folder, "tensor t is in two shards, a.safetensors and b.safetensors");
  }

  @Test
  void truncatedShard() throws IOException {
    byte[] shard = Files.readAllBytes(folder.resolve(SECOND));
    Files.write(folder.resolve(SECOND), Arrays.copyOf(shard, shard.length - 1));
    assertThatThrownBy(this::open)
        .isInstanceOf(InvalidSafetensorsException.class)
        .hasMessageContaining(SECOND)
        .hasMessageContaining("the file is shorter than its header says");
  }

  @Test
  void brokenConfig() throws IOException {
    Files.writeString(folder.resolve("config.json"), "[1]");
    assertRefused(folder, "config.json is no JSON object");
    Files.writeString(folder.resolve("config.json"), "{\"a\":1,\"a\":2}");
    assertRefused(folder, "config.json is no JSON");
  }

  @Test
  void manyShardsAndTensors() throws IOException {
    Path large = Files.createDirectory(temporary.resolve("large"));
    StringBuilder index = new StringBuilder("{\"weight_map\":{");
    for (int shard = 0; shard < 300; shard++) {
      String file = String.format("model-%05d-of-00300.safetensors", shard + 1);
      String[] names = new String[100];
      for (int i = 0; i < names.length; i++) {
        names[i] = "model.layers." + shard + ".mlp.experts." + i + ".down_proj.weight";
        index.append(shard + i == 0 ? "" : ",").append('"').append(names[i]).append("\":\"").append(file).append('"');
      }

      write(large.resolve(file), names);
    }

    Files.writeString(large.resolve(CheckpointIndex.NAME), index.append("}}"));
    assertThat(Checkpoint.open(new Configuration(), large.toString()).tensors()).hasSize(30_000);
  }

  private Checkpoint open() throws IOException {
    return Checkpoint.open(new Configuration(), folder.toString());
  }

  private static void assertRefused(Path folder, String message) {
    assertThatThrownBy(() -> Checkpoint.open(new Configuration(), folder.toString()))
        .isInstanceOf(InvalidCheckpointException.class)
        .hasMessageStartingWith("Invalid checkpoint ")
        .hasMessageContaining(folder.toString())
        .hasMessageContaining(message);
  }

  private static void write(Path file, String... names) throws IOException {
    List<TensorInfo> tensors = new ArrayList<>();
    for (String name : names) {
      tensors.add(new TensorInfo(name, DType.U8, List.of(1L), tensors.size(), tensors.size() + 1));
    }

    byte[] header = SafetensorsHeader.encode(tensors, SafetensorsHeader.FORMAT_PT);
    Files.write(file, Arrays.copyOf(header, header.length + names.length));
  }
}
