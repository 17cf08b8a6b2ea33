package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The Python that other tests read outputs back with. */
class PythonIT {
  @TempDir
  private Path folder;

  @Test
  void hasWhatTestsReadWith() {
    assertThat(Python.required().evaluate("import numpy, ml_dtypes, safetensors.numpy; print('all there')"))
        .isEqualTo("all there");
  }

  @Test
  void readsSynthesizedCheckpoint() {
    Python python = Python.required();
    String output = folder.resolve("checkpoint").toString();
    SparkSubmitResult result = SparkSubmit.local(1).run("synthesize", "--output", output, "--family", "mixtral",
        "--layers", "1", "--experts", "2", "--hidden", "64", "--intermediate", "32", "--vocab", "16", "--dtype", "f32");
    assertThat(result.status()).as(result.err()).isZero();

    String read = python.run("/python/describe_tensor.py",
        output + "/model-00001-of-00001.safetensors", "model.layers.0.block_sparse_moe.experts.1.w2.weight");

    assertThat(read).isEqualTo("float32 (64, 32) finite");
  }
}
