package org.sparkfp4.jobs.synthetic;

import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait;
import org.sparkfp4.jobs.synthetic.SyntheticTensor.Kind;
import org.sparkfp4.safetensors.DType;

/** The tensors of a model of a family, in the order in which its modules are built: the order of published shards. */
final class SyntheticTensors {
  private final SyntheticFamily family;
  private final ModelShape shape;
  private final DType dtype;
  private final List<SyntheticTensor> tensors = new ArrayList<>();

  private SyntheticTensors(SyntheticFamily family, ModelShape shape, DType dtype) {
    this.family = family;
    this.shape = shape;
    this.dtype = dtype;
  }

  static List<SyntheticTensor> of(SyntheticFamily family, ModelShape shape, DType dtype) {
    if (family.template() != null) {
      return family.template().tensors(shape, family.denseLayers(), dtype);
    }

    SyntheticTensors all = new SyntheticTensors(family, shape, dtype);
    all.addModel();
    return all.tensors;
  }

  private void addModel() {
    matrix("model.embed_tokens", shape.vocab(), shape.hidden());
    for (int layer = 0; layer < shape.layers(); layer++) {
      addLayer("model.layers." + layer, layer < family.denseLayers());
    }

    if (family.has(Trait.MTP)) {
      addPredictionLayer("model.layers." + shape.layers());
    }

    norm("model.norm", shape.hidden());
    matrix("lm_head", shape.vocab(), shape.hidden());
  }

  private void addLayer(String layer, boolean dense) {
    norm(layer + ".input_layernorm", shape.hidden());
    if (family.has(Trait.MLA)) {
      addLatentAttention(layer + ".self_attn");
    } else {
      addAttention(layer + ".self_attn");
    }

    norm(layer + ".post_attention_layernorm", shape.hidden());
    if (dense) {
      mlp(layer + ".mlp", shape.intermediate() * family.denseFactor());
    } else {
      addExperts(layer);
    }
  }

  private void addAttention(String attention) {
    int head = SyntheticFamily.headDim(shape.hidden());
    int queries = family.heads(shape.hidden()) * head;
    int keys = family.keyHeads(shape.hidden()) * head;
    projection(attention + ".q_proj", queries);
    projection(attention + ".k_proj", keys);
    projection(attention + ".v_proj", keys);
    matrix(attention + ".o_proj", shape.hidden(), queries);
    if (family.has(Trait.QK_NORM)) {
      norm(attention + ".q_norm", head);
      norm(attention + ".k_norm", head);
    }
  }

  private void projection(String module, int rows) {
    matrix(module, rows, shape.hidden());
    if (family.has(Trait.QKV_BIAS)) {
      add(module + ".bias", dtype, Kind.WEIGHT, rows);
    }
  }

  private void addLatentAttention(String attention) {
    LatentAttention latent = LatentAttention.of(family, shape.hidden());
    matrix(attention + ".q_a_proj", latent.queryRank(), shape.hidden());
    norm(attention + ".q_a_layernorm", latent.queryRank());
    matrix(attention + ".q_b_proj", latent.heads() * (latent.head() + latent.rope()), latent.queryRank());
    matrix(attention + ".kv_a_proj_with_mqa", latent.keyRank() + latent.rope(), shape.hidden());
    norm(attention + ".kv_a_layernorm", latent.keyRank());
    matrix(attention + ".kv_b_proj", latent.heads() * 2 * latent.head(), latent.keyRank());
    matrix(attention + ".o_proj", shape.hidden(), latent.heads() * latent.head());
  }

  private void addExperts(String layer) {
    boolean blockSparse = family.has(Trait.BLOCK_SPARSE);
    String moe = layer + (blockSparse ? ".block_sparse_moe" : ".mlp");
    matrix(moe + ".gate", shape.experts(), shape.hidden());
    if (family.has(Trait.CORRECTION_BIAS)) {
      add(moe + (blockSparse ? "" : ".gate") + ".e_score_correction_bias", DType.F32, Kind.WEIGHT, shape.experts());
    }

    for (int expert = 0; expert < shape.experts(); expert++) {
      String module = moe + ".experts." + expert;
      if (blockSparse) {
        matrix(module + ".w1", shape.intermediate(), shape.hidden());
        matrix(module + ".w2", shape.hidden(), shape.intermediate());
        matrix(module + ".w3", shape.intermediate(), shape.hidden());
      } else {
        mlp(module, shape.intermediate());
      }
    }

    if (family.has(Trait.SHARED_EXPERTS)) {
      mlp(moe + ".shared_experts", shape.intermediate());
    } else if (family.has(Trait.SHARED_EXPERT_GATE)) {
      mlp(moe + ".shared_expert", shape.intermediate() * family.denseFactor());
      matrix(moe + ".shared_expert_gate", 1, shape.hidden());
    }
  }

  private void addPredictionLayer(String layer) {
    norm(layer + ".enorm", shape.hidden());
    norm(layer + ".hnorm", shape.hidden());
    matrix(layer + ".eh_proj", shape.hidden(), 2L * shape.hidden());
    addLayer(layer, false);
    norm(layer + ".shared_head.norm", shape.hidden());
  }

  private void mlp(String module, int width) {
    matrix(module + ".gate_proj", width, shape.hidden());
    matrix(module + ".up_proj", width, shape.hidden());
    matrix(module + ".down_proj", shape.hidden(), width);
  }

  private void matrix(String module, long rows, long cols) {
    add(module + ".weight", dtype, Kind.WEIGHT, rows, cols);
  }

  private void norm(String module, long width) {
    add(module + ".weight", dtype, Kind.NORM, width);
  }

  private void add(String name, DType type, Kind kind, long... dimensions) {
    List<Long> dims = new ArrayList<>();
    for (long dimension : dimensions) {
      dims.add(dimension);
    }

    tensors.add(new SyntheticTensor(name, type, dims, kind));
  }
}
