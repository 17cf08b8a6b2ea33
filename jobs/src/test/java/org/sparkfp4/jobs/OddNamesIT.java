package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.safetensors.DType;

/** Names that a file system allows and Hadoop, a shell or JSON take for something else. */
class OddNamesIT {
  private static final Path GOLDEN = CheckpointFiles.golden("qwen3_moe_bf16");
  private static final String ODD = "a b#c?d%20e:f[g]{h}*;i'j\"k\\l ";

  @TempDir
  private Path folder;

  private Path source;
  private Path output;
  private Map<String, StoredTensor> tensors;

  @BeforeEach
  void makeSource() throws IOException {
    source = Files.createDirectory(folder.resolve("source " + ODD));
    output = folder.resolve("output " + ODD);
    tensors = new TreeMap<>(CheckpointFiles.read(GOLDEN));
    tensors.put("odd\n\u001b[31m\"\u2028../\u00e9", new StoredTensor(DType.F32, List.of(1L), new byte[4]));
    tensors.put("", new StoredTensor(DType.BF16, List.of(0L, 3L), new byte[0]));
    CheckpointFiles.write(source.resolve("my:model.safetensors"), tensors);
    String config = Files.readString(GOLDEN.resolve("config.json"));
    Files.writeString(source.resolve("config.json"), config.replaceFirst("\\{", "{\"limit\": [0.0, Infinity],"));
  }

  @Test
  void areCarriedThrough() throws Exception {
    Files.writeString(source.resolve("a:b#c?.json"), "side");
    Files.writeString(source.resolve("README.md"), "---\nlicense: mit\n---\n");
    // left by Hadoop when the files were others
    Files.write(source.resolve(".README.md.crc"), new byte[12]);
    Files.write(source.resolve(".a:b#c?.json.crc"), new byte[12]);
    // what an output has of its own
    Files.writeString(source.resolve("_sparkfp4"), "x");
    Files.writeString(source.resolve("sparkfp4-manifest.json"), "x");

    SparkSubmitResult result = new InProcess()
        .conf("spark.fp4.unitBytes", "4096")
        .run("quantize", "--input", source.toString(), "--output", output.toString());

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(output.resolve("a:b#c?.json")).hasContent("side");
    assertThat(output.resolve("README.md")).content().startsWith("---\nlicense: mit\n");
    assertThat(output.resolve("config.json")).content().contains("[ 0.0, Infinity ]");
    assertVerified(source, output);
    SparkSubmitResult again = new InProcess()
        .run("quantize", "--input", source.toString(), "--output", output.toString());
    assertThat(again.status()).as(again.err()).isZero();
    assertThat(output.resolve("_sparkfp4")).doesNotExist();
  }

  @Test
  void stayInTheirLine() {
    SparkSubmitResult result = new InProcess().run("inspect", source.toString());

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).contains("odd\\n\\u001b[31m\"").doesNotContain("\u001b");
  }
}
