package org.sparkfp4.jobs.synthetic;

import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.BLOCK_SPARSE;
import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.CORRECTION_BIAS;
import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.MLA;
import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.MTP;
import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.QKV_BIAS;
import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.QK_NORM;
import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.SHARED_EXPERTS;
import static org.sparkfp4.jobs.synthetic.SyntheticFamily.Trait.SHARED_EXPERT_GATE;

import java.util.EnumSet;
import java.util.Locale;
import java.util.Set;

/** Model families that can be synthesized: the names, the shapes and the config.json of a well-known member. */
public enum SyntheticFamily {
  MIXTRAL("MixtralForCausalLM", new ModelShape(32, 8, 4096, 14336, 32000), 2, 1.0, 0, 0, EnumSet.of(BLOCK_SPARSE)),
  MINIMAX_M2("MiniMaxM2ForCausalLM", new ModelShape(62, 256, 3072, 1536, 200064), 8, 2.0, 0, 0,
      EnumSet.of(BLOCK_SPARSE, QK_NORM, CORRECTION_BIAS)),
  QWEN2_MOE("Qwen2MoeForCausalLM", new ModelShape(28, 64, 3584, 2560, 151936), 8, 1.0, 0, 8,
      EnumSet.of(QKV_BIAS, SHARED_EXPERT_GATE)),
  QWEN3_MOE("Qwen3MoeForCausalLM", new ModelShape(48, 128, 2048, 768, 151936), 8, 2.0, 0, 8, EnumSet.of(QK_NORM)),
  DEEPSEEK_V2("DeepseekV2ForCausalLM", new ModelShape(60, 160, 5120, 1536, 102400), 6, 3.2, 1, 8,
      EnumSet.of(MLA, SHARED_EXPERTS)),
  DEEPSEEK_V3("DeepseekV3ForCausalLM", new ModelShape(61, 256, 7168, 2048, 129280), 8, 2.2857, 3, 9,
      EnumSet.of(MLA, SHARED_EXPERTS, CORRECTION_BIAS, MTP)),
  KIMI_K2("DeepseekV3ForCausalLM", new ModelShape(61, 384, 7168, 2048, 163840), 8, 1.1429, 1, 9,
      EnumSet.of(MLA, SHARED_EXPERTS, CORRECTION_BIAS)),
  GLM4_MOE("Glm4MoeForCausalLM", new ModelShape(46, 128, 4096, 1408, 151552), 8, 3.0, 1, 8,
      EnumSet.of(QK_NORM, QKV_BIAS, SHARED_EXPERTS, CORRECTION_BIAS, MTP)),
  DEEPSEEK_V32(new ModelShape(61, 256, 7168, 2048, 129280), 3),
  DEEPSEEK_V4(new ModelShape(61, 384, 7168, 3072, 129280), 0),
  KIMI_K25(new ModelShape(61, 384, 7168, 2048, 163840), 1),
  KIMI_K3(new ModelShape(93, 896, 7168, 3072, 163840), 1),
  MINIMAX_M3(new ModelShape(60, 128, 6144, 3072, 200064), 3),
  GLM4_MOE_LITE(new ModelShape(47, 64, 2048, 1536, 154880), 1),
  GLM4V_MOE(new ModelShape(46, 128, 4096, 1408, 151552), 1),
  GLM5(new ModelShape(78, 256, 6144, 2048, 154880), 3),
  QWEN3_NEXT(new ModelShape(48, 512, 2048, 512, 151936), 0),
  QWEN3_5_MOE(new ModelShape(60, 512, 4096, 1024, 248320), 0),
  QWEN3_VL_MOE(new ModelShape(48, 128, 2048, 768, 151936), 0),
  LLAMA4(new ModelShape(48, 128, 5120, 8192, 202048), 0),
  GPT_OSS(new ModelShape(36, 128, 2880, 2880, 201088), 0),
  NEMOTRON_H(new ModelShape(52, 128, 2688, 1856, 131072), 0),
  PHIMOE(new ModelShape(32, 16, 4096, 6400, 32064), 0),
  LFM2_MOE(new ModelShape(24, 32, 2048, 1792, 65536), 1),
  OLMOE(new ModelShape(16, 64, 2048, 1024, 50304), 0),
  ERNIE4_5_MOE(new ModelShape(28, 64, 2560, 1536, 103424), 1),
  JAMBA(new ModelShape(32, 16, 4096, 14336, 65536), 0);

  /** What sets a family's tensors apart. */
  enum Trait {
    /** {@code block_sparse_moe.experts.E.w1/w3/w2} instead of {@code mlp.experts.E.gate/up/down_proj}. */
    BLOCK_SPARSE,
    /** Multi-head latent attention. */
    MLA,
    /** Norms of queries and keys. */
    QK_NORM,
    /** Biases of q, k and v. */
    QKV_BIAS,
    /** {@code mlp.shared_experts}. */
    SHARED_EXPERTS,
    /** {@code mlp.shared_expert} with a gate of its own. */
    SHARED_EXPERT_GATE,
    /** {@code e_score_correction_bias} beside the router, fp32. */
    CORRECTION_BIAS,
    /** A layer for multi-token prediction behind the last one. */
    MTP
  }

  private final String architecture;
  private final ModelShape shape;
  private final int topExperts;
  private final double attentionWidth;
  private final int denseLayers;
  private final int denseFactor;
  private final Set<Trait> traits;
  private final FamilyTemplate template;

  SyntheticFamily(String architecture, ModelShape shape, int topExperts, double attentionWidth, int denseLayers,
      int denseFactor, Set<Trait> traits) {
    this.architecture = architecture;
    this.shape = shape;
    this.topExperts = topExperts;
    this.attentionWidth = attentionWidth;
    this.denseLayers = denseLayers;
    this.denseFactor = denseFactor;
    this.traits = traits;
    this.template = null;
  }

  SyntheticFamily(ModelShape shape, int denseLayers) {
    this.architecture = null;
    this.shape = shape;
    this.topExperts = 0;
    this.attentionWidth = 0;
    this.denseLayers = denseLayers;
    this.denseFactor = 0;
    this.traits = Set.of();
    this.template = FamilyTemplate.of(modelType());
  }

  /** What describes the family's tensors, or null for one that its traits describe. */
  FamilyTemplate template() {
    return template;
  }

  /** The name that {@code synthesize --family} takes: for most, the {@code model_type} of config.json. */
  public String modelType() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** The sizes of the family's well-known member. */
  public ModelShape shape() {
    return shape;
  }

  /** First layers that have one dense MLP and no experts. */
  public int denseLayers() {
    return denseLayers;
  }

  /** Routed experts of a token. */
  int topExperts() {
    return topExperts;
  }

  String architecture() {
    return architecture;
  }

  boolean has(Trait trait) {
    return traits.contains(trait);
  }

  /** Width of a dense or shared MLP in widths of a routed expert. */
  int denseFactor() {
    return denseFactor;
  }

  /** Width of one attention head for a model of this width. */
  static int headDim(int hidden) {
    return hidden >= 1024 ? 128 : hidden >= 256 ? 64 : 32;
  }

  /** Heads of queries: the family's ratio of attention width to model width. */
  int heads(int hidden) {
    int heads = (int) Math.round(hidden * attentionWidth / headDim(hidden));
    return heads >= 8 ? heads / 8 * 8 : Math.max(1, heads);
  }

  int keyHeads(int hidden) {
    return Math.max(1, heads(hidden) / 8);
  }

  @Override
  public String toString() {
    return modelType();
  }
}
