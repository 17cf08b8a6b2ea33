package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.TestSpark;
import org.sparkfp4.calibration.Activations;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/**
 * What the tests of clusters put on other file systems, in a folder of this machine: {@code source}, a checkpoint of 50
 * MB, {@code keys} and {@code activations}, each with what the commands make of it here: {@code undisturbed}, {@code
 * cache} and {@code statistics}.
 */
final class ClusterInputs {
  static final String[] FOLDERS = {"source", "keys", "activations"};

  private ClusterInputs() {}

  static void make(Path folder) throws IOException {
    new SyntheticCheckpoint(SyntheticFamily.QWEN3_MOE, new ModelShape(2, 16, 512, 512, 1024), DType.BF16, 7, 16 << 20)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(folder.resolve("source").toString()));
    new KeyFiles()
        .gaussian("model.layers.0.index_k", DType.BF16, 0, 300, 128)
        .gaussian("model.layers.1.index_k", DType.BF16, 0, 70, 128)
        .write(folder.resolve("keys/keys.safetensors"));
    Files.createDirectories(folder.resolve("activations"));
    CheckpointFiles.write(folder.resolve("activations/a.safetensors"), Map.of(
        "model.layers.0.mlp.experts.0.down_proj.input", Activations.random(96, 256, 3).bf16()));
    String root = folder.toString();
    for (String[] command : new String[][] {
      quantize(root, "undisturbed"), keys(root, "cache"), calibrate(root, "statistics")
    }) {
      SparkSubmitResult result = new InProcess().run(command);
      assertThat(result.status()).as(result.err()).isZero();
    }
  }

  static String[] quantize(String root, String output) {
    return new String[] {
      "quantize", "--input", root + "/source", "--output", root + "/" + output, "--max-shard-size", "1MB"
    };
  }

  static String[] keys(String root, String output) {
    return new String[] {"quantize-keys", "--input", root + "/keys", "--output", root + "/" + output};
  }

  static String[] calibrate(String root, String output) {
    return new String[] {
      "calibrate", "--input", root + "/activations", "--output", root + "/" + output, "--hessian", "none"
    };
  }
}
