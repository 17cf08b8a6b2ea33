package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.TestSpark;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticCheckpoint;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;
import org.sparkfp4.safetensors.DType;

/** A small model of every family, names and storage as its published checkpoints have them, through the whole job. */
class FamiliesTest {
  @TempDir
  private Path folder;

  @ParameterizedTest
  @EnumSource(SyntheticFamily.class)
  void quantizesAndVerifies(SyntheticFamily family) throws Exception {
    Path source = synthesize(family);

    Path output = quantize(source, "output");

    verify(source, output);
  }

  private Path synthesize(SyntheticFamily family) throws Exception {
    Path source = folder.resolve("source");
    int layers = Math.max(2, family.denseLayers() + 1);
    new SyntheticCheckpoint(family, new ModelShape(layers, 3, 128, 64, 96), DType.BF16, 5, 300_000)
        .write(TestSpark.session(), new org.apache.hadoop.fs.Path(source.toUri()));
    return source;
  }

  private Path quantize(Path source, String name, String... options) {
    Path output = folder.resolve(name);
    List<String> arguments =
        new ArrayList<>(List.of("quantize", "--input", source.toString(), "--output", output.toString()));
    arguments.addAll(List.of(options));
    SparkSubmitResult result = new InProcess().run(arguments.toArray(new String[0]));
    assertThat(result.status()).as(result.err()).isZero();
    return output;
  }

  private static void verify(Path source, Path output) {
    SparkSubmitResult result = new InProcess().run(
        "verify", "--source", source.toString(), "--quantized", output.toString(), "--sample", "100%");
    assertThat(result.status()).as(result.out() + result.err()).isZero();
  }
}
