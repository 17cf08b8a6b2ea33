package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.sparkfp4.jobs.Verified.assertVerified;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.TestSpark;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SyntheticModel;
import org.sparkfp4.formats.BFloat16;
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

    assertVerified(source, output);
  }

  /** Dense families: names and shapes of a small model, weights of its own. */
  @ParameterizedTest
  @ValueSource(strings = {"llama", "mistral", "qwen2", "qwen3", "bert"})
  void quantizesAndVerifiesWhatHasNoExperts(String family) throws Exception {
    SyntheticModel model = SyntheticModel.of(family);
    Random random = new Random(14);
    Map<String, StoredTensor> tensors = new LinkedHashMap<>();
    for (LocatedTensor tensor : model.tensors()) {
      ByteBuffer data = ByteBuffer.allocate((int) tensor.length()).order(ByteOrder.LITTLE_ENDIAN);
      while (data.hasRemaining()) {
        data.putShort(BFloat16.fromFloat(0.02f * (float) random.nextGaussian()));
      }

      tensors.put(tensor.name(), new StoredTensor(tensor.dtype(), tensor.shape(), data.array()));
    }

    Path source = Files.createDirectory(folder.resolve("source"));
    CheckpointFiles.write(source.resolve("model.safetensors"), tensors);
    Files.writeString(source.resolve("config.json"), model.config().toString());

    Path output = quantize(source, "output", "--targets", "linears");

    String attention = family.equals("bert") ? "encoder.layer.2.attention.self.key" : "model.layers.2.self_attn.k_proj";
    String mlp = family.equals("bert") ? "encoder.layer.0.output.dense" : "model.layers.0.mlp.down_proj";
    assertThat(CheckpointFiles.read(output)).containsKeys(attention + ".weight_scale_2", mlp + ".weight_scale_2");
    assertVerified(source, output);
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
}
