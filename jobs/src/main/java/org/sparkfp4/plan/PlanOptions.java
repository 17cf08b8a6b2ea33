package org.sparkfp4.plan;

/**
 * The options of {@code quantize} that the output's bytes depend on.
 *
 * @param layout name of the layout: {@code modelopt} or {@code compressed-tensors}
 * @param scaleSearch how block scales are chosen: {@code rtn}
 * @param targets which layers: {@code experts}, {@code mlp} or {@code linears}
 * @param weightOnly whether activations stay in high precision (W4A16)
 * @param maxShardBytes largest output shard; 0 for the size that the checkpoint's own gives
 */
public record PlanOptions(String layout, String scaleSearch, String targets, boolean weightOnly, long maxShardBytes) {}
