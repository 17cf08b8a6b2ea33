package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.formats.Bytes;
import org.sparkfp4.formats.NVFP4Tensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/** The one file that TensorRT Edge-LLM takes the experts of all layers from. */
class RuntimeContainerTest extends LayoutRuns {
  @Test
  void containerIsWhatThePluginTakes() throws IOException {
    Path made = convert(gated, "trt-edge-llm-sm110", "made");

    JsonNode entry = json(made, "config.json").path("external_weight_files").path(0);
    assertThat(entry.path("file").asText()).isEqualTo(CONTAINER);
    assertThat(entry.path("kind").asText()).isEqualTo("nvfp4_moe_weights");
    SafetensorsHeader header = header(made.resolve(CONTAINER));
    assertThat(header.dataStart() % 8).isZero();
    assertThat(header.metadata()).containsEntry("sparkfp4.layout", "trt-edge-llm-sm110");
    List<String> names = new ArrayList<>();
    entry.path("tensors").forEach(name -> names.add(name.asText()));
    assertThat(header.tensors().stream().map(TensorInfo::name)).containsExactlyElementsOf(names);
    assertThat(header.tensors().stream().limit(9)
        .map(tensor -> tensor.name() + " " + tensor.dtype() + " " + tensor.shape()))
        .containsExactly(
            "model.layers.0.block_sparse_moe.experts.fc1_qweights I8 [128, 256, 128]",
            "model.layers.0.block_sparse_moe.experts.fc1_blocks_scale I8 [128, 2, 4, 32, 4, 4]",
            "model.layers.0.block_sparse_moe.experts.fc1_alpha F32 [128]",
            "model.layers.0.block_sparse_moe.experts.fc2_qweights I8 [128, 256, 64]",
            "model.layers.0.block_sparse_moe.experts.fc2_blocks_scale I8 [128, 2, 2, 32, 4, 4]",
            "model.layers.0.block_sparse_moe.experts.fc2_alpha F32 [128]",
            "model.layers.0.block_sparse_moe.experts.input_global_scale F32 [128]",
            "model.layers.0.block_sparse_moe.experts.down_input_scale F32 [128]",
            "model.layers.0.block_sparse_moe.experts.e_score_correction_bias F32 [128]");
    Map<String, StoredTensor> tensors = CheckpointFiles.read(made.resolve(CONTAINER));
    Map<String, StoredTensor> source = CheckpointFiles.read(gated);
    String path = "model.layers.1.block_sparse_moe.";
    assertThat(tensors.get(path + "experts.e_score_correction_bias").data())
        .isEqualTo(source.get(path + "e_score_correction_bias").data());
    assertThat(little(tensors.get(path + "experts.input_global_scale")).getFloat(17 * 4)).isEqualTo(1);
    assertThat(little(tensors.get(path + "experts.fc1_alpha")).getFloat(17 * 4))
        .isEqualTo(little(source.get(path + "experts.17.w1.weight_scale_2")).getFloat());
  }

  private static SafetensorsHeader header(Path file) throws IOException {
    org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(file.toUri());
    return SafetensorsHeader.read(FileSystem.getLocal(new Configuration()).getRawFileSystem(), path);
  }

  /** Read by the page's view, the file gives the values of ModelOpt's output. */
  @ParameterizedTest
  @ValueSource(strings = {"trt-edge-llm-sm110", "trt-edge-llm-sm12x"})
  void viewDecodesTheSameValues(String layout) throws IOException {
    Path made = quantize(gatedSource, folder.resolve("made"), layout);
    Map<String, StoredTensor> container = CheckpointFiles.read(made.resolve(CONTAINER));
    Map<String, StoredTensor> source = CheckpointFiles.read(gated);
    String path = "model.layers.1.block_sparse_moe.experts.";
    NVFP4Tensor fc1 = view(container, path + "fc1_", 2 * WIDTH, HIDDEN);
    NVFP4Tensor fc2 = view(container, path + "fc2_", HIDDEN, WIDTH);
    for (int expert : new int[] {0, 17, 127}) {
      float[] gate = decoded(source, path + expert + ".w1", WIDTH, HIDDEN);
      float[] up = decoded(source, path + expert + ".w3", WIDTH, HIDDEN);
      float[] down = decoded(source, path + expert + ".w2", HIDDEN, WIDTH);
      assertThat(gate).isNotEqualTo(up);
      for (int row = 0; row < WIDTH; row++) {
        boolean interleaved = layout.equals("trt-edge-llm-sm110");
        int place = interleaved ? row / 64 * 128 + row % 64 : row;
        assertThat(row(fc1, expert, place, HIDDEN)).isEqualTo(row(up, row, HIDDEN));
        assertThat(row(fc1, expert, place + (interleaved ? 64 : WIDTH), HIDDEN)).isEqualTo(row(gate, row, HIDDEN));
      }

      for (int row = 0; row < HIDDEN; row++) {
        assertThat(row(fc2, expert, row, WIDTH)).isEqualTo(row(down, row, WIDTH));
      }
    }
  }

  private static NVFP4Tensor view(Map<String, StoredTensor> tensors, String name, int rows, int cols) {
    float[] alpha = new float[128];
    little(tensors.get(name + "alpha")).asFloatBuffer().get(alpha);
    return NVFP4Tensor.weights(128, rows, cols, Bytes.of(tensors.get(name + "qweights").data()),
        Bytes.of(tensors.get(name + "blocks_scale").data()), alpha);
  }

  private static float[] row(NVFP4Tensor tensor, int expert, int row, int cols) {
    float[] values = new float[cols];
    tensor.decodeRow(expert, row, values);
    return values;
  }

  private static float[] row(float[] matrix, int row, int cols) {
    return Arrays.copyOfRange(matrix, row * cols, (row + 1) * cols);
  }

  private static float[] decoded(Map<String, StoredTensor> tensors, String module, int rows, int cols) {
    ByteBuffer values = ByteBuffer.allocate(rows * cols * Float.BYTES).order(ByteOrder.nativeOrder());
    Nvfp4.decode(Nvfp4Recipe.MODELOPT, little(tensors.get(module + ".weight")),
        little(tensors.get(module + ".weight_scale")), rows, cols,
        little(tensors.get(module + ".weight_scale_2")).getFloat(), values.asFloatBuffer());
    float[] floats = new float[rows * cols];
    values.asFloatBuffer().get(floats);
    return floats;
  }

  @Test
  void namesComeFromAnExport() throws IOException {
    Path made = convert(gated, "trt-edge-llm-sm12x", "made");
    Map<String, StoredTensor> inOrder = new LinkedHashMap<>();
    Map<String, StoredTensor> named = CheckpointFiles.read(made.resolve(CONTAINER));
    for (TensorInfo tensor : header(made.resolve(CONTAINER)).tensors()) {
      String input = tensor.name().substring(tensor.name().lastIndexOf('.') + 1);
      inOrder.put("onnx::" + inOrder.size() + "_" + input, named.get(tensor.name()));
    }

    Path export = folder.resolve("export.safetensors");
    CheckpointFiles.write(export, inOrder);

    Path renamed = convert(gated, "trt-edge-llm-sm12x", "renamed", "--initializer-names", export.toString());

    Map<String, StoredTensor> found = CheckpointFiles.read(renamed.resolve(CONTAINER));
    assertThat(found.keySet()).containsExactlyElementsOf(inOrder.keySet());
    inOrder.forEach((name, tensor) -> assertThat(found.get(name).data()).as(name).isEqualTo(tensor.data()));
    assertSameTensors(gated, convert(renamed, "modelopt", "back"));
    SparkSubmitResult other =
        tryConvert(gated, "trt-edge-llm-sm12x", "other", "--initializer-names", gated.resolve(shard(gated)).toString());
    assertThat(other.status()).isEqualTo(1);
    assertThat(other.err()).contains("Cannot take the name of model.layers.0.block_sparse_moe.experts.fc1_qweights from ");
    assertThat(folder.resolve("other")).doesNotExist();
  }
}
