package org.sparkfp4.plan;

import java.util.Optional;
import java.util.Set;
import org.sparkfp4.checkpoint.BlockTensors;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.Role;
import org.sparkfp4.checkpoint.SourceTensors;

/**
 * Attentions whose query projection also makes a gate for their output, as in Qwen3-Next. The gate loses much in 4 bits,
 * and runtimes fuse the projection with those of keys and values: the three stay as they are.
 */
final class GatedAttention {
  static final String REASON = "query with an output gate, or fused with it";

  private static final Set<String> FUSED = Set.of("q_proj", "k_proj", "v_proj");

  private final Optional<Boolean> declared;

  GatedAttention(ModelConfig config) {
    declared = config.flag("attn_output_gate");
  }

  boolean keeps(BlockTensors block, LocatedTensor weight) {
    return block.role() == Role.ATTENTION && isGated(block) && FUSED.contains(lastPart(weight));
  }

  /** As the config says; where it is silent, a gate doubles the query's rows. */
  private boolean isGated(BlockTensors block) {
    LocatedTensor query = block.weights().get("q_proj");
    LocatedTensor output = block.weights().get("o_proj");
    return declared.orElse(query != null && output != null && query.rows() == 2 * output.cols());
  }

  private static String lastPart(LocatedTensor weight) {
    String module = SourceTensors.module(weight.name());
    return module.substring(module.lastIndexOf('.') + 1);
  }
}
