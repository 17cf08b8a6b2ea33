package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** Runs of quantize and convert, over a small model of 128 experts and others. */
abstract class LayoutRuns {
  private static final ObjectMapper JSON = new ObjectMapper();
  static final String CONTAINER = "external_nvfp4_moe_weights.safetensors";
  static final int HIDDEN = 256;
  static final int WIDTH = 128;

  @TempDir
  static Path models;

  @TempDir
  Path folder;

  static Path gatedSource;
  static Path gated;

  @BeforeAll
  static void quantizeGated() throws IOException {
    gatedSource = synthesize("gated-source", SyntheticFamily.MINIMAX_M2, new ModelShape(2, 128, HIDDEN, WIDTH, 96));
    gated = quantize(gatedSource, models.resolve("gated"), "modelopt");
  }

  static Path synthesize(String name, SyntheticFamily family, ModelShape shape) throws IOException {
    Path source = models.resolve(name);
    new SyntheticCheckpoint(family, shape, DType.BF16, 11, 20 << 20)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toUri()));
    return source;
  }

  static Path quantize(Path source, Path output, String layout, String... options) {
    said(source, output, layout, options);
    return output;
  }

  /** What quantize says. */
  static String said(Path source, Path output, String layout, String... options) {
    List<String> arguments = new ArrayList<>(List.of("quantize", "--input", source.toString(), "--output",
        output.toString(), "--layout", layout, "--scale-search", "rtn", "--max-shard-size", "5MB"));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = new InProcess().run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return result.out();
  }

  Path convert(Path input, String layout, String name, String... options) {
    SparkSubmitResult result = tryConvert(input, layout, name, options);
    assertThat(result.status()).as(result.err()).isZero();
    return folder.resolve(name);
  }

  SparkSubmitResult tryConvert(Path input, String layout, String name, String... options) {
    List<String> arguments = new ArrayList<>(List.of("convert", "--input", input.toString(), "--to", layout, "--output",
        folder.resolve(name).toString(), "--max-shard-size", "6MB"));
    arguments.addAll(List.of(options));
    return new InProcess().run(arguments.toArray(new String[0]));
  }

  static void assertSameTensors(Path expected, Path actual) throws IOException {
    Map<String, StoredTensor> wanted = CheckpointFiles.read(expected);
    Map<String, StoredTensor> found = CheckpointFiles.read(actual);
    assertThat(found.keySet()).containsExactlyInAnyOrderElementsOf(wanted.keySet());
    wanted.forEach((name, tensor) -> {
      assertThat(found.get(name).dtype()).as(name).isEqualTo(tensor.dtype());
      assertThat(found.get(name).shape()).as(name).isEqualTo(tensor.shape());
      assertThat(Arrays.equals(found.get(name).data(), tensor.data())).as("bytes of " + name).isTrue();
    });
    for (String config : List.of("config.json", "hf_quant_config.json")) {
      assertThat(json(actual, config)).isEqualTo(json(expected, config));
    }
  }

  static JsonNode json(Path output, String file) throws IOException {
    return JSON.readTree(output.resolve(file).toFile());
  }

  static ByteBuffer little(StoredTensor tensor) {
    return ByteBuffer.wrap(tensor.data()).order(ByteOrder.LITTLE_ENDIAN);
  }

  static String shard(Path output) {
    return Arrays.stream(output.toFile().list()).filter(name -> name.endsWith("00001.safetensors")
        || name.startsWith("model-00001")).findFirst().orElseThrow();
  }
}
