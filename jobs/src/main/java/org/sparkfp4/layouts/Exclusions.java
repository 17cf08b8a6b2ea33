package org.sparkfp4.layouts;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.plan.KeptModule;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;

/**
 * The modules that a runtime must not build as NVFP4 layers: all that a plan keeps, those below a path as one entry
 * where nothing below it is quantized.
 *
 * <p>Entries reach no higher than needed to cover fused modules too: a runtime asks for {@code self_attn.qkv_proj}
 * or {@code mlp.experts}, which no tensor is named after.
 */
final class Exclusions {
  /** Names that runtimes build for layers that they fuse, and those of the layers. */
  private static final Map<String, List<String>> FUSED = Map.of(
      "qkv_proj", List.of("q_proj", "k_proj", "v_proj"),
      "gate_up_proj", List.of("gate_proj", "up_proj"),
      "fused_qkv_a_proj", List.of("q_a_proj", "kv_a_proj_with_mqa"));

  private final Node root = new Node("");
  private final List<Exclusion> found = new ArrayList<>();

  private Exclusions(QuantizationPlan plan) {
    for (KeptModule kept : plan.kept()) {
      add(kept.module(), false);
    }

    for (OutputShard shard : plan.shards()) {
      for (Unit unit : shard.units()) {
        for (Member member : unit.members()) {
          add(member.module(), true);
        }
      }
    }

    collect(root, "");
  }

  /** The exclusions of a plan, in the order in which it keeps the modules. */
  static List<Exclusion> of(QuantizationPlan plan) {
    return new Exclusions(plan).found;
  }

  private void add(String module, boolean quantized) {
    Node node = root;
    node.quantized |= quantized;
    for (String part : module.split("\\.")) {
      node = node.children.computeIfAbsent(part, Node::new);
      node.quantized |= quantized;
    }
  }

  private void collect(Node node, String path) {
    for (Node child : node.children.values()) {
      String below = path.isEmpty() ? child.name : path + "." + child.name;
      if (child.quantized) {
        collect(child, below);
      } else if (child.children.isEmpty()) {
        found.add(new Exclusion(below, Exclusion.Extent.MODULE));
      } else {
        boolean shared = isPrefixOfOthers(child, node);
        found.add(new Exclusion(below, shared ? Exclusion.Extent.BELOW : Exclusion.Extent.PREFIX));
      }
    }

    collectFused(node, path);
  }

  /** A runtime that undoes no fusion asks for the fused name: as where q, k and v are kept, but not the output. */
  private void collectFused(Node node, String path) {
    FUSED.forEach((name, parts) -> {
      if (parts.stream().allMatch(part -> node.children.containsKey(part) && !node.children.get(part).quantized)) {
        found.add(new Exclusion(path + "." + name, Exclusion.Extent.MODULE));
      }
    });
  }

  /** Whether names that begin as the child's may be of quantized modules; indices of layers always may. */
  private static boolean isPrefixOfOthers(Node child, Node parent) {
    return Character.isDigit(child.name.charAt(0))
        || parent.children.values().stream().anyMatch(other -> other.quantized && other.name.startsWith(child.name));
  }

  /** A part of module paths. */
  private static final class Node {
    private final String name;
    private final Map<String, Node> children = new LinkedHashMap<>();
    private boolean quantized;

    Node(String name) {
      this.name = name;
    }
  }
}
