package org.sparkfp4.plan;

import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.BlockTensors;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.Role;
import org.sparkfp4.checkpoint.RoledTensor;
import org.sparkfp4.checkpoint.SourceTensors;

/**
 * Which weights the options choose: those of the targets' roles that the user's patterns leave in. What runtimes fuse
 * is chosen as a whole, unless the options allow otherwise.
 */
final class LayerChoice {
  private final Targets targets;
  private final Selection selection;
  private final GatedAttention gated;
  private final ModulePatterns include;
  private final ModulePatterns exclude;
  private final Map<LocatedTensor, String> left = new IdentityHashMap<>();

  /**
   * Chooses among the weights of blocks.
   *
   * @param others the other tensors, which patterns may name too
   * @throws IllegalArgumentException if a pattern matches nothing, or a part of what runtimes fuse
   */
  LayerChoice(
      List<BlockTensors> blocks,
      List<RoledTensor> others,
      GatedAttention gated,
      Targets targets,
      Selection selection) {
    this.targets = targets;
    this.selection = selection;
    this.gated = gated;
    this.include = new ModulePatterns(selection.include());
    this.exclude = new ModulePatterns(selection.exclude());
    blocks.forEach(this::choose);
    others.forEach(other -> exclude.match(SourceTensors.module(other.tensor().name())));
    requireUsed(include, "--include", "no layer that --targets " + targets.optionName() + " chooses");
    requireUsed(exclude, "--exclude", "no module of the checkpoint");
    if (!selection.allowPartialFusion()) {
      requireWhole(blocks);
    }
  }

  /** Why a block's weight is not chosen, or null if it is. */
  String reason(LocatedTensor weight) {
    return left.get(weight);
  }

  private void choose(BlockTensors block) {
    boolean targeted = targets.include(block.role());
    for (LocatedTensor weight : block.weights().values()) {
      String module = SourceTensors.module(weight.name());
      String excluding = exclude.match(module);
      if (!targeted) {
        left.put(weight, block.role().description());
      } else if (gated.keeps(block, weight)) {
        left.put(weight, GatedAttention.REASON);
      } else {
        boolean included = include.isEmpty() || include.match(module) != null;
        if (excluding != null) {
          left.put(weight, "excluded by " + excluding);
        } else if (!included) {
          left.put(weight, "not included");
        }
      }
    }
  }

  private static void requireUsed(ModulePatterns patterns, String option, String what) {
    if (!patterns.unused().isEmpty()) {
      throw new IllegalArgumentException("Invalid " + option + " " + patterns.unused().get(0) + ": it matches " + what
          + "; a pattern is for the whole name, such as *.layers.3.mlp.experts.*, and inspect lists the names");
    }
  }

  private void requireWhole(List<BlockTensors> blocks) {
    Map<String, LocatedTensor> chosen = new HashMap<>();
    Map<String, LocatedTensor> leftOut = new HashMap<>();
    for (BlockTensors block : blocks) {
      for (List<String> group : block.groups()) {
        for (LocatedTensor weight : block.weights(group)) {
          String set = block.role() == Role.ROUTED_EXPERT
              ? UnitFinder.parent(block.path())
              : block.path() + " " + group;
          (reason(weight) == null ? chosen : leftOut).putIfAbsent(set, weight);
        }
      }
    }

    for (Map.Entry<String, LocatedTensor> entry : chosen.entrySet()) {
      LocatedTensor out = leftOut.get(entry.getKey());
      if (out != null) {
        throw new IllegalArgumentException("Cannot quantize " + SourceTensors.module(entry.getValue().name()) + " but not "
            + SourceTensors.module(out.name()) + " (" + reason(out) + "): runtimes fuse them into one module; choose both "
            + "or neither, or give --allow-partial-fusion");
      }
    }
  }
}
