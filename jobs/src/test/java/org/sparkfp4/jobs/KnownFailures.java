package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.io.TempDir;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/**
 * What broke for others who did this job, a test a kind of failure: makes small models, quantizes them, and changes what is
 * there.
 */
abstract class KnownFailures {
  static final ObjectMapper JSON = new ObjectMapper();
  static final ModelShape SHAPE = new ModelShape(2, 3, 128, 64, 96);

  private static final String SHARD = "model-00001-of-00001.safetensors";

  @TempDir
  private Path temporary;

  /** An empty folder of the test's own. */
  final Path folder() {
    return temporary;
  }

  Path synthesize(SyntheticFamily family, ModelShape shape) throws Exception {
    Path source = temporary.resolve("source");
    new SyntheticCheckpoint(family, shape, DType.BF16, 3, 200_000)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toUri()));
    return source;
  }

  Path quantize(Path source, String... options) throws IOException {
    Path output = Files.createTempDirectory(temporary, "output").resolve("nvfp4");
    List<String> arguments =
        new ArrayList<>(List.of(
            "quantize", "--input", source.toString(), "--output", output.toString(), "--scale-search", "rtn"));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }

  static String verify(Path source, Path output) {
    return run("verify", "--source", source.toString(), "--quantized", output.toString()).out();
  }

  static SparkSubmitResult run(String... arguments) {
    return new InProcess().run(arguments);
  }

  /** A copy of a checkpoint, in one shard, with other tensors. */
  Path rewrite(Path checkpoint, UnaryOperator<Map<String, StoredTensor>> change) throws IOException {
    Path copy = Files.createTempDirectory(temporary, "rewritten");
    for (String file : List.of("config.json", "hf_quant_config.json")) {
      if (Files.exists(checkpoint.resolve(file))) {
        Files.copy(checkpoint.resolve(file), copy.resolve(file));
      }
    }

    Map<String, StoredTensor> tensors = change.apply(CheckpointFiles.read(checkpoint));
    CheckpointFiles.write(copy.resolve(SHARD), tensors);
    CheckpointFiles.writeIndex(copy, SHARD, tensors);
    return copy;
  }

  static Map<String, StoredTensor> replaced(
      Map<String, StoredTensor> tensors, String name, UnaryOperator<StoredTensor> change) {
    Map<String, StoredTensor> changed = new LinkedHashMap<>(tensors);
    changed.put(name, change.apply(tensors.get(name)));
    return changed;
  }

  static ObjectNode config(Path checkpoint) throws IOException {
    return (ObjectNode) JSON.readTree(checkpoint.resolve("config.json").toFile());
  }
}
