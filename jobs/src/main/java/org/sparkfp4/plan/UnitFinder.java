package org.sparkfp4.plan;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.BlockTensors;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelTensors;
import org.sparkfp4.checkpoint.Role;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.Nvfp4;

/** Decides which layers are quantized, and which of them share a global scale. */
final class UnitFinder {
  private final SourceTensors source;
  private final LayerChoice choice;
  private final List<List<Member>> units = new ArrayList<>();
  private final List<LocatedTensor> kept = new ArrayList<>();
  private final Map<LocatedTensor, String> reasons = new IdentityHashMap<>();

  /**
   * @param choice the weights that are wanted
   * @param strict whether one that is wanted and cannot be quantized is an error
   */
  UnitFinder(ModelTensors tensors, LayerChoice choice, boolean strict) {
    this.source = tensors.source();
    this.choice = choice;
    if (strict) {
      tensors.blocks().forEach(this::requireFit);
    }

    Map<String, String> unfit = unfitExperts(tensors.blocks());
    tensors.blocks().forEach(block -> find(block, unfit));
  }

  private void requireFit(BlockTensors block) {
    for (LocatedTensor weight : block.weights().values()) {
      if (choice.reason(weight) == null && !fits(weight)) {
        throw new IllegalArgumentException("Cannot quantize " + weight.name() + " (" + weight.file() + "), as --strict "
            + "asks: " + ownReason(weight) + "; exclude it, or leave --strict out to keep it as it is");
      }
    }
  }

  /** The members of each unit. */
  List<List<Member>> units() {
    return units;
  }

  /** The weights of blocks that stay as they are. */
  List<LocatedTensor> kept() {
    return kept;
  }

  /** Why a weight of a block stays as it is. */
  String reason(LocatedTensor weight) {
    return reasons.get(weight);
  }

  /**
   * Why the experts of a layer cannot be quantized, by the experts' common path. Runtimes keep a layer's experts in
   * one fused module: all of them are quantized or none is.
   */
  private Map<String, String> unfitExperts(List<BlockTensors> blocks) {
    Map<String, String> unfit = new HashMap<>();
    for (BlockTensors block : blocks) {
      if (block.role() == Role.ROUTED_EXPERT) {
        block.weights().values().stream()
            .filter(weight -> choice.reason(weight) == null && !fits(weight))
            .findFirst()
            .ifPresent(weight -> unfit.putIfAbsent(parent(block.path()), unfitReason(weight)));
      }
    }

    return unfit;
  }

  private void find(BlockTensors block, Map<String, String> unfitExperts) {
    String whole = unfitExperts.get(parent(block.path()));
    for (List<String> group : block.groups()) {
      List<LocatedTensor> wanted = new ArrayList<>();
      for (LocatedTensor weight : block.weights(group)) {
        String reason = choice.reason(weight);
        if (reason == null) {
          wanted.add(weight);
        } else {
          keep(List.of(weight), reason);
        }
      }

      if (wanted.isEmpty()) {
        continue;
      }

      if (block.role() == Role.ROUTED_EXPERT && whole != null) {
        keep(wanted, whole);
      } else if (wanted.stream().allMatch(this::fits)) {
        units.add(members(wanted));
      } else {
        keep(wanted, unfitReason(wanted.stream().filter(weight -> !fits(weight)).findFirst().orElseThrow()));
      }
    }
  }

  private void keep(List<LocatedTensor> weights, String reason) {
    for (LocatedTensor weight : weights) {
      kept.add(weight);
      reasons.put(weight, reason);
    }
  }

  private List<Member> members(List<LocatedTensor> weights) {
    LocatedTensor first = weights.get(0);
    for (LocatedTensor weight : weights) {
      if (!source.scheme(weight).equals(source.scheme(first)) || weight.cols() != first.cols()) {
        throw new IllegalArgumentException("Cannot quantize " + first.name() + " (" + source.scheme(first) + ", K "
            + first.cols() + ", " + first.file() + ") and " + weight.name() + " (" + source.scheme(weight) + ", K "
            + weight.cols() + ", " + weight.file() + "): runtimes fuse them, so they must share a global scale, a "
            + "dtype and K; store both in one way");
      }
    }

    return weights.stream().map(this::member).toList();
  }

  private Member member(LocatedTensor weight) {
    StoredWeight stored = source.stored(weight);
    return new Member(SourceTensors.module(weight.name()), weight, stored == null ? null : stored.scale());
  }

  private boolean fits(LocatedTensor weight) {
    return weight.cols() % divisor(weight) == 0 && weight.length() > 0;
  }

  /** What K must be a multiple of; a block of MXFP4 becomes two of NVFP4. */
  private long divisor(LocatedTensor weight) {
    StoredWeight stored = source.stored(weight);
    return stored != null && stored.scheme().codes() == CodeType.E2M1 ? stored.scheme().blockCols() : Nvfp4.BLOCK;
  }

  private String unfitReason(LocatedTensor weight) {
    return ownReason(weight) + (weight.length() == 0 ? "" : ", here or in a layer that runtimes fuse with it");
  }

  private String ownReason(LocatedTensor weight) {
    return weight.length() == 0 ? "no elements" : "K " + weight.cols() + " is no multiple of " + divisor(weight);
  }

  static String parent(String path) {
    return path.substring(0, Math.max(0, path.lastIndexOf('.')));
  }
}
