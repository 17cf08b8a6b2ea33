package org.sparkfp4.jobs.synthetic;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait;
import org.sparkfp4.safetensors.DType;

/** The config.json of a synthetic model, with the keys of its family. */
final class SyntheticConfig {
  private SyntheticConfig() {}

  static ObjectNode of(SyntheticFamily family, ModelShape shape, DType dtype) {
    if (family.template() != null) {
      return family.template().config(shape, family.denseLayers(), dtype);
    }

    ObjectNode config = JsonNodeFactory.instance.objectNode();
    config.putArray("architectures").add(family.architecture());
    config.put("model_type", family.modelType())
        .put("hidden_act", "silu")
        .put("hidden_size", shape.hidden())
        .put("num_hidden_layers", shape.layers())
        .put("num_attention_heads", family.heads(shape.hidden()))
        .put("vocab_size", shape.vocab())
        .put("num_experts_per_tok", Math.min(family.topExperts(), shape.experts()))
        .put("max_position_embeddings", 32768)
        .put("rms_norm_eps", 1e-6)
        .put("rope_theta", 1000000.0)
        .put("tie_word_embeddings", false)
        .put("torch_dtype", dtype == DType.BF16 ? "bfloat16" : dtype == DType.F16 ? "float16" : "float32");
    putAttention(config, family, shape);
    putExperts(config, family, shape);
    return config;
  }

  private static void putAttention(ObjectNode config, SyntheticFamily family, ModelShape shape) {
    if (family.has(Trait.MLA)) {
      LatentAttention latent = LatentAttention.of(family, shape.hidden());
      config.put("num_key_value_heads", latent.heads())
          .put("q_lora_rank", latent.queryRank())
          .put("kv_lora_rank", latent.keyRank())
          .put("qk_nope_head_dim", latent.head())
          .put("qk_rope_head_dim", latent.rope())
          .put("v_head_dim", latent.head());
    } else {
      config.put("num_key_value_heads", family.keyHeads(shape.hidden()))
          .put("head_dim", SyntheticFamily.headDim(shape.hidden()))
          .put("attention_bias", family.has(Trait.QKV_BIAS))
          .put("use_qk_norm", family.has(Trait.QK_NORM));
    }
  }

  private static void putExperts(ObjectNode config, SyntheticFamily family, ModelShape shape) {
    if (family.has(Trait.BLOCK_SPARSE)) {
      config.put("num_local_experts", shape.experts()).put("intermediate_size", shape.intermediate());
      return;
    }

    config.put("moe_intermediate_size", shape.intermediate())
        .put("intermediate_size", shape.intermediate() * family.denseFactor())
        .put("norm_topk_prob", true);
    if (family.has(Trait.SHARED_EXPERTS)) {
      config.put("n_routed_experts", shape.experts())
          .put("n_shared_experts", 1)
          .put("first_k_dense_replace", family.denseLayers())
          .put("moe_layer_freq", 1)
          .put("num_nextn_predict_layers", family.has(Trait.MTP) ? 1 : 0);
    } else {
      config.put("num_experts", shape.experts()).put("decoder_sparse_step", 1).putArray("mlp_only_layers");
    }

    if (family.has(Trait.SHARED_EXPERT_GATE)) {
      config.put("shared_expert_intermediate_size", shape.intermediate() * family.denseFactor());
    }
  }
}
