package org.sparkfp4.checkpoint;

import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * The weights of one expert, MLP or attention of a checkpoint.
 *
 * @param role the role of all of them
 * @param path module path that they share, such as {@code model.layers.3.mlp.experts.17}
 * @param layer index of the layer
 * @param groups names below the path, those that share a global scale together, in the order in which runtimes fuse
 *     them
 * @param weights the weight of each name that is there
 */
public record BlockTensors(
    Role role, String path, int layer, List<List<String>> groups, Map<String, LocatedTensor> weights) {

  /** The weights of a group that are there, in its order. */
  public List<LocatedTensor> weights(List<String> group) {
    return group.stream().map(weights::get).filter(Objects::nonNull).toList();
  }
}
