package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.sparkfp4.jobs.synthetic.ModelShape;
import org.sparkfp4.jobs.synthetic.SyntheticHeaders;
import org.sparkfp4.safetensors.DType;

/** Config and tensor names of a small model of a family, as its published checkpoints have them. */
public final class SyntheticModel {
  public static final List<String> FAMILIES = Stream.concat(
          Stream.of(
              "mixtral", "minimax_m2", "qwen2_moe", "qwen3_moe", "deepseek_v2", "deepseek_v3", "kimi_k2", "glm4_moe",
              "llama", "mistral", "qwen2", "qwen3", "bert"),
          SyntheticHeaders.templates().stream())
      .toList();

  private static final int HEADER = 128;

  private final ObjectNode config = JsonNodeFactory.instance.objectNode();
  private final List<LocatedTensor> tensors = new ArrayList<>();
  private final String type;
  private String prefix = "";
  private String file = "model-00001-of-00002.safetensors";
  private DType dtype = DType.BF16;
  private long offset = HEADER;
  private long hidden = 64;
  private long intermediate = 32;
  private int experts = 4;
  private int layers = 3;

  public SyntheticModel(String type) {
    this.type = type;
    config.put("model_type", type);
  }

  /** A small model of a family. */
  public static SyntheticModel of(String family) {
    return new SyntheticModel(family).fill();
  }

  public SyntheticModel prefix(String value) {
    prefix = value;
    return this;
  }

  public SyntheticModel sizes(long hiddenSize, long intermediateSize, int expertCount, int layerCount) {
    hidden = hiddenSize;
    intermediate = intermediateSize;
    experts = expertCount;
    layers = layerCount;
    return this;
  }

  public ObjectNode config() {
    return config;
  }

  public List<LocatedTensor> tensors() {
    return tensors;
  }

  /** What is added from now on lies in that file. */
  public SyntheticModel file(String name) {
    file = name;
    offset = HEADER;
    return this;
  }

  public SyntheticModel dtype(DType value) {
    dtype = value;
    return this;
  }

  public SyntheticModel add(String name, long... shape) {
    long length = dtype.bytes(LongStream.of(shape).reduce(1, Math::multiplyExact));
    tensors.add(new LocatedTensor(prefix + name, dtype, LongStream.of(shape).boxed().toList(), file, offset, length));
    offset += length;
    return this;
  }

  public SyntheticModel remove(String name) {
    tensors.removeIf(tensor -> tensor.name().equals(name));
    return this;
  }

  /** Another shape or dtype for a tensor, its place left as it is. */
  public SyntheticModel replace(String name, DType type, long... shape) {
    tensors.replaceAll(tensor -> !tensor.name().equals(name) ? tensor : new LocatedTensor(
        name, type, LongStream.of(shape).boxed().toList(), tensor.file(), tensor.offset(),
        type.bytes(LongStream.of(shape).reduce(1, Math::multiplyExact))));
    return this;
  }

  public SyntheticModel fill() {
    if (SyntheticHeaders.templates().contains(type)) {
      return fillFromTemplate();
    }

    config.put("hidden_size", hidden).put("num_hidden_layers", layers);
    switch (type) {
      case "bert" -> bert();
      case "llama", "mistral", "qwen2", "qwen3" -> decoder(false, 0);
      default -> decoder(true, layersBehind());
    }

    return this;
  }

  private SyntheticModel fillFromTemplate() {
    SyntheticHeaders headers = new SyntheticHeaders(
        type, new ModelShape(layers, experts, (int) hidden, (int) intermediate, 96));
    config.setAll(headers.config());
    for (SyntheticHeaders.Header tensor : headers.tensors()) {
      dtype = tensor.dtype();
      add(tensor.name(), tensor.shape().stream().mapToLong(Long::longValue).toArray());
    }

    dtype = DType.BF16;
    return this;
  }

  private int layersBehind() {
    return switch (type) {
      case "deepseek_v3", "glm4_moe" -> 1;
      default -> 0;
    };
  }

  private void decoder(boolean moe, int mtp) {
    String expertsKey = switch (type) {
      case "mixtral", "minimax_m2" -> "num_local_experts";
      case "qwen2_moe", "qwen3_moe" -> "num_experts";
      default -> "n_routed_experts";
    };
    boolean blockSparse = expertsKey.equals("num_local_experts");
    if (moe) {
      config.put(expertsKey, experts).put(blockSparse ? "intermediate_size" : "moe_intermediate_size", intermediate);
    }

    if (mtp > 0) {
      config.put("num_nextn_predict_layers", mtp);
    }

    add("model.embed_tokens.weight", 96, hidden);
    for (int layer = 0; layer < layers + mtp; layer++) {
      String path = "model.layers." + layer;
      add(path + ".input_layernorm.weight", hidden);
      attention(path);
      if (!moe || (layer == 0 && firstIsDense())) {
        mlp(path + ".mlp", 2 * intermediate);
      } else if (blockSparse) {
        blockSparse(path + ".block_sparse_moe");
      } else {
        experts(path + ".mlp");
      }

      if (layer >= layers) {
        add(path + ".eh_proj.weight", hidden, 2 * hidden).add(path + ".enorm.weight", hidden);
        add(path + ".embed_tokens.weight", 96, hidden).add(path + ".shared_head.head.weight", 96, hidden);
      }
    }

    file("model-00002-of-00002.safetensors");
    add("model.norm.weight", hidden).add("lm_head.weight", 96, hidden);
  }

  private boolean firstIsDense() {
    return isLatent() || type.equals("glm4_moe");
  }

  private boolean isLatent() {
    return type.startsWith("deepseek") || type.startsWith("kimi");
  }

  private void attention(String layer) {
    String path = layer + ".self_attn";
    if (isLatent()) {
      add(path + ".q_a_proj.weight", 32, hidden).add(path + ".q_a_layernorm.weight", 32);
      add(path + ".q_b_proj.weight", hidden, 32);
      add(path + ".kv_a_proj_with_mqa.weight", 48, hidden).add(path + ".kv_a_layernorm.weight", 32);
      add(path + ".kv_b_proj.weight", hidden, 32);
    } else {
      add(path + ".q_proj.weight", hidden, hidden).add(path + ".q_proj.bias", hidden);
      add(path + ".k_proj.weight", 32, hidden).add(path + ".v_proj.weight", 32, hidden);
    }

    add(path + ".o_proj.weight", hidden, hidden);
  }

  private void mlp(String path, long size) {
    add(path + ".gate_proj.weight", size, hidden);
    add(path + ".up_proj.weight", size, hidden);
    add(path + ".down_proj.weight", hidden, size);
  }

  private void blockSparse(String path) {
    add(path + ".gate.weight", experts, hidden);
    for (int expert = 0; expert < experts; expert++) {
      add(path + ".experts." + expert + ".w1.weight", intermediate, hidden);
      add(path + ".experts." + expert + ".w2.weight", hidden, intermediate);
      add(path + ".experts." + expert + ".w3.weight", intermediate, hidden);
    }
  }

  private void experts(String path) {
    add(path + ".gate.weight", experts, hidden).add(path + ".gate.e_score_correction_bias", experts);
    for (int expert = 0; expert < experts; expert++) {
      mlp(path + ".experts." + expert, intermediate);
    }

    if (type.equals("qwen2_moe")) {
      mlp(path + ".shared_expert", intermediate);
      add(path + ".shared_expert_gate.weight", 1, hidden);
    } else if (firstIsDense()) {
      mlp(path + ".shared_experts", intermediate);
    }
  }

  private void bert() {
    add("embeddings.word_embeddings.weight", 96, hidden).add("embeddings.position_embeddings.weight", 32, hidden);
    add("embeddings.token_type_embeddings.weight", 2, hidden).add("embeddings.LayerNorm.weight", hidden);
    for (int layer = 0; layer < layers; layer++) {
      String path = "encoder.layer." + layer;
      for (String name : List.of("query", "key", "value")) {
        add(path + ".attention.self." + name + ".weight", hidden, hidden);
        add(path + ".attention.self." + name + ".bias", hidden);
      }

      add(path + ".attention.output.dense.weight", hidden, hidden);
      add(path + ".attention.output.LayerNorm.weight", hidden);
      add(path + ".intermediate.dense.weight", 4 * hidden, hidden);
      add(path + ".output.dense.weight", hidden, 4 * hidden);
    }

    add("pooler.dense.weight", hidden, hidden);
  }
}
