package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.jobs.synthetic.SyntheticFamily;

/** Scales that are missing, not shared, or no numbers. */
class KnownScaleFailuresTest extends KnownFailures {
  @Test
  void anExpertWithoutStatisticsHasAPositiveInputScale() throws Exception {
    Map<String, StoredTensor> output = CheckpointFiles.read(quantize(synthesize(SyntheticFamily.QWEN3_MOE, SHAPE)));

    List<String> scales = output.keySet().stream().filter(name -> name.endsWith(".input_scale")).toList();
    assertThat(scales).hasSize(2 * 3 * 3).allMatch(name -> scalar(output, name) == 1f);
  }

  @Test
  void gateAndUpInDifferentShardsShareOneGlobalScale() throws Exception {
    Path source = CheckpointFiles.golden("qwen3_moe_bf16");
    JsonNode files = JSON.readTree(source.resolve("model.safetensors.index.json").toFile()).path("weight_map");
    String expert = "model.layers.0.mlp.experts.0.";
    assertThat(files.path(expert + "gate_proj.weight")).isNotEqualTo(files.path(expert + "up_proj.weight"));

    Map<String, StoredTensor> output = CheckpointFiles.read(quantize(source));

    float amax = Math.max(
        amax(CheckpointFiles.read(source).get(expert + "gate_proj.weight")),
        amax(CheckpointFiles.read(source).get(expert + "up_proj.weight")));
    assertThat(scalar(output, expert + "gate_proj.weight_scale_2")).isEqualTo(amax / 2688f);
    assertThat(scalar(output, expert + "up_proj.weight_scale_2")).isEqualTo(amax / 2688f);
  }

  @Test
  void aTinyTensorWithABlockOfZerosHasNoScaleThatIsNaN() throws Exception {
    Path source = rewrite(synthesize(SyntheticFamily.QWEN3_MOE, SHAPE), tensors ->
        replaced(tensors, "model.layers.0.mlp.experts.1.down_proj.weight", KnownScaleFailuresTest::tinyWithZeros));

    Map<String, StoredTensor> output = CheckpointFiles.read(quantize(source));

    output.forEach((name, tensor) -> {
      if (name.endsWith(".weight_scale")) {
        for (byte scale : tensor.data()) {
          assertThat(scale & 0x7F).as(name).isNotEqualTo(0x7F);
        }
      }
    });
  }

  @Test
  void verificationLooksAtEveryScaleByte() throws Exception {
    Path source = synthesize(SyntheticFamily.QWEN3_MOE, SHAPE);
    String name = "model.layers.1.mlp.experts.2.up_proj.weight_scale";
    Path output = rewrite(quantize(source), tensors -> replaced(tensors, name, tensor -> {
      byte[] data = tensor.data().clone();
      data[data.length - 1] = 0x7F;
      return new StoredTensor(tensor.dtype(), tensor.shape(), data);
    }));

    assertThat(verify(source, output)).contains(name).contains("NaN");
  }

  private static StoredTensor tinyWithZeros(StoredTensor tensor) {
    ByteBuffer data = ByteBuffer.allocate(tensor.data().length).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < data.capacity() / 2; i++) {
      data.putShort(BFloat16.fromFloat(i / 16 == 1 ? 0 : i % 7 * 0.01f / 7));
    }

    return new StoredTensor(tensor.dtype(), tensor.shape(), data.array());
  }

  private static float scalar(Map<String, StoredTensor> tensors, String name) {
    return ByteBuffer.wrap(tensors.get(name).data()).order(ByteOrder.LITTLE_ENDIAN).getFloat();
  }

  private static float amax(StoredTensor bf16) {
    ByteBuffer data = ByteBuffer.wrap(bf16.data()).order(ByteOrder.LITTLE_ENDIAN);
    float amax = 0;
    while (data.hasRemaining()) {
      amax = Math.max(amax, Math.abs(BFloat16.toFloat(data.getShort())));
    }

    return amax;
  }
}
