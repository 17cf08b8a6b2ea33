package org.sparkfp4.convert;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.CheckpointFiles;
import org.sparkfp4.StoredTensor;
import org.sparkfp4.safetensors.DType;

/** A checkpoint in ModelOpt's layout with one layer of experts, whose bytes are those of Edge-LLM's digests. */
final class ExpertFiles {
  static final String PATH = "model.layers.0.mlp.experts";
  static final String SHARD = "model-00001-of-00001.safetensors";

  private final Map<String, StoredTensor> tensors = new LinkedHashMap<>();

  /** Experts of {@code [width, hidden]} and back, with the seeds 1000 e + 10 for up, + 20 for gate, + 30 for down. */
  static ExpertFiles of(boolean gated, int experts, int hidden, int width) {
    ExpertFiles files = new ExpertFiles();
    for (int e = 0; e < experts; e++) {
      if (gated) {
        files.add(e, "gate_proj", 1000 * e + 20, width, hidden);
      }

      files.add(e, "up_proj", 1000 * e + 10, width, hidden);
      files.add(e, "down_proj", 1000 * e + 30, hidden, width);
    }

    return files;
  }

  private void add(int expert, String projection, int seed, int rows, int cols) {
    String module = PATH + "." + expert + "." + projection;
    byte[] codes = bytes(seed, rows * cols / 2);
    byte[] scales = bytes(seed + 1, rows * cols / 16);
    for (int i = 0; i < scales.length; i++) {
      scales[i] = (byte) ((scales[i] & 0xFF) % 126 + 1);
    }

    tensors.put(module + ".weight", new StoredTensor(DType.U8, List.of((long) rows, cols / 2L), codes));
    tensors.put(module + ".weight_scale", new StoredTensor(DType.F8_E4M3, List.of((long) rows, cols / 16L), scales));
    global(expert, projection, 0.001f);
  }

  /** The linear congruential generator of the digests. */
  static byte[] bytes(int seed, int count) {
    byte[] bytes = new byte[count];
    long x = seed;
    for (int i = 0; i < count; i++) {
      x = (1103515245 * x + 12345) % (1L << 31);
      bytes[i] = (byte) (x >> 16);
    }

    return bytes;
  }

  ExpertFiles global(int expert, String projection, float scale) {
    tensors.put(PATH + "." + expert + "." + projection + ".weight_scale_2", new StoredTensor(
        DType.F32, List.of(), ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putFloat(scale).array()));
    return this;
  }

  StoredTensor get(String name) {
    return tensors.get(PATH + "." + name);
  }

  ExpertFiles remove(String name) {
    tensors.remove(PATH + "." + name);
    return this;
  }

  ExpertFiles put(String name, DType dtype, List<Long> shape, byte[] data) {
    tensors.put(PATH + "." + name, new StoredTensor(dtype, shape, data));
    return this;
  }

  /** Scalars before all else, as producers have them that write tensors by type. */
  ExpertFiles scalarsFirst() {
    Map<String, StoredTensor> others = new LinkedHashMap<>(tensors);
    others.values().removeIf(tensor -> tensor.dtype() == DType.F32);
    tensors.values().removeIf(tensor -> tensor.dtype() != DType.F32);
    tensors.putAll(others);
    return this;
  }

  /** Writes the checkpoint. */
  Path write(Path folder) throws IOException {
    Files.createDirectories(folder);
    Files.writeString(folder.resolve("config.json"), "{\"model_type\": \"qwen3_moe\"}");
    CheckpointFiles.write(folder.resolve(SHARD), tensors);
    CheckpointFiles.writeIndex(folder, SHARD, tensors);
    return folder;
  }
}
