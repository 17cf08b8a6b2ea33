package org.sparkfp4.jobs.synthetic;

/** Sizes of multi-head latent attention, in DeepSeek V3's proportions to the model's width. */
record LatentAttention(int heads, int head, int rope, int queryRank, int keyRank) {
  static LatentAttention of(SyntheticFamily family, int hidden) {
    int head = SyntheticFamily.headDim(hidden);
    return new LatentAttention(family.heads(hidden), head, head / 2,
        ModelShape.ceil(hidden * 3 / 14, 16), ModelShape.ceil(hidden / 14, 16));
  }
}
