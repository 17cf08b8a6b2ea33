package org.sparkfp4.checkpoint;

import java.util.List;

/**
 * The tensors of a checkpoint by their roles.
 *
 * @param source the tensors, and how those are stored that are quantized
 * @param blocks experts, MLPs and attentions, complete and as the config says
 * @param others every tensor that is no weight of a block, in the order of the checkpoint
 * @param heads output heads that the family knows, whether or not the checkpoint has a tensor for them: tied ones have
 *     none, yet runtimes build the layer
 */
public record ModelTensors(
    SourceTensors source, List<BlockTensors> blocks, List<RoledTensor> others, List<String> heads) {
  public ModelTensors {
    blocks = List.copyOf(blocks);
    others = List.copyOf(others);
    heads = List.copyOf(heads);
  }
}
