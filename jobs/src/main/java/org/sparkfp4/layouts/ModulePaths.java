package org.sparkfp4.layouts;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.sparkfp4.checkpoint.NaturalOrder;
import org.sparkfp4.plan.KeptFormat;
import org.sparkfp4.plan.KeptModule;
import org.sparkfp4.plan.Member;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;

/**
 * The modules of a plan by their precision, those below a path as one entry where nothing below it has another.
 *
 * <p>Entries reach no higher than needed to cover fused modules too: a runtime asks for {@code self_attn.qkv_proj}
 * or {@code mlp.experts}, which no tensor is named after. They are in the order of their names, so that a model has one
 * list, whatever made it and from whatever files.
 */
final class ModulePaths {
  private static final String EXPERTS = "experts";

  /** Names that runtimes build for layers that they fuse, and those of the layers. */
  private static final Map<String, List<String>> FUSED = Map.of(
      "qkv_proj", List.of("q_proj", "k_proj", "v_proj"),
      "gate_up_proj", List.of("gate_proj", "up_proj"),
      "fused_qkv_a_proj", List.of("q_a_proj", "kv_a_proj_with_mqa"));

  private final Node root = new Node("");

  /** What a module is: NVFP4, or kept in a format of the source, or, where that is null, in high precision. */
  private record Precision(boolean quantized, KeptFormat format) {}

  /**
   * @throws IllegalArgumentException if modules that runtimes fuse stay in different precisions of the source
   */
  ModulePaths(QuantizationPlan plan) {
    for (KeptModule kept : plan.kept()) {
      add(kept.module(), new Precision(false, kept.format()));
    }

    for (OutputShard shard : plan.shards()) {
      for (Unit unit : shard.units()) {
        for (Member member : unit.members()) {
          add(member.module(), new Precision(true, null));
        }
      }
    }

    requireAlike(root, "");
  }

  /** Modules that are no NVFP4 layers. */
  List<ModulePath> unquantized() {
    return matching(precision -> !precision.quantized());
  }

  /** Modules in high precision. */
  List<ModulePath> highPrecision() {
    return kept(null);
  }

  /** Modules that are kept in a format. */
  List<ModulePath> kept(KeptFormat format) {
    Precision wanted = new Precision(false, format);
    return matching(wanted::equals);
  }

  private List<ModulePath> matching(Predicate<Precision> wanted) {
    List<ModulePath> found = new ArrayList<>();
    collect(root, "", wanted, found);
    found.sort(Comparator.comparing(ModulePath::path, new NaturalOrder()));
    return found;
  }

  private void add(String module, Precision precision) {
    Node node = root;
    node.below.add(precision);
    for (String part : module.split("\\.")) {
      node = node.children.computeIfAbsent(part, Node::new);
      node.below.add(precision);
    }
  }

  private static void collect(Node node, String path, Predicate<Precision> wanted, List<ModulePath> found) {
    for (Node child : node.children.values()) {
      if (child.below.stream().noneMatch(wanted)) {
        continue;
      }

      String below = join(path, child.name);
      if (!child.below.stream().allMatch(wanted)) {
        collect(child, below, wanted, found);
      } else if (child.children.isEmpty()) {
        found.add(new ModulePath(below, ModulePath.Extent.MODULE));
      } else {
        boolean shared = isPrefixOfOthers(child, node, wanted);
        found.add(new ModulePath(below, shared ? ModulePath.Extent.BELOW : ModulePath.Extent.PREFIX));
      }
    }

    // a runtime that undoes no fusion asks for the fused name: as where q, k and v are kept, but not the output
    FUSED.forEach((name, parts) -> {
      if (parts.stream().allMatch(part ->
          node.children.containsKey(part) && node.children.get(part).below.stream().allMatch(wanted))) {
        found.add(new ModulePath(join(path, name), ModulePath.Extent.MODULE));
      }
    });
  }

  /** Whether names that begin as the child's may be of other modules; indices of layers always may, and so may no name. */
  private static boolean isPrefixOfOthers(Node child, Node parent, Predicate<Precision> wanted) {
    return child.name.isEmpty()
        || Character.isDigit(child.name.charAt(0))
        || parent.children.values().stream()
            .anyMatch(other -> !other.below.stream().allMatch(wanted) && other.name.startsWith(child.name));
  }

  /** Runtimes give a fused module one precision. What is quantized in part was chosen so. */
  private static void requireAlike(Node node, String path) {
    for (Map.Entry<String, List<String>> fused : FUSED.entrySet()) {
      List<Node> parts = fused.getValue().stream().map(node.children::get).filter(part -> part != null).toList();
      requireAlike(parts, path, fused.getKey());
    }

    for (Node child : node.children.values()) {
      if (child.name.equals(EXPERTS)) {
        requireAlike(List.of(child), path, EXPERTS);
      }

      requireAlike(child, join(path, child.name));
    }
  }

  private static void requireAlike(List<Node> parts, String path, String fused) {
    Set<Precision> precisions = new LinkedHashSet<>();
    parts.forEach(part -> precisions.addAll(part.below));
    if (precisions.size() > 1 && precisions.stream().noneMatch(Precision::quantized)) {
      throw new IllegalArgumentException("Cannot keep the source's precision in " + path + ": runtimes fuse its "
          + String.join(", ", parts.stream().map(part -> part.name).toList()) + " into " + fused
          + ", which has one, and the source stores them as "
          + String.join(" and ", precisions.stream().map(ModulePaths::text).toList())
          + "; leave --keep-source-precision out, and all become BF16");
    }
  }

  private static String text(Precision precision) {
    KeptFormat format = precision.format();
    return format == null
        ? "high precision"
        : format.scheme() + (format.staticActivations() ? " with an input_scale" : "");
  }

  private static String join(String path, String name) {
    return path.isEmpty() ? name : path + "." + name;
  }

  /** A part of module paths, and the precisions of the modules there and below. */
  private static final class Node {
    private final String name;
    private final Map<String, Node> children = new LinkedHashMap<>();
    private final Set<Precision> below = new LinkedHashSet<>(2);

    Node(String name) {
      this.name = name;
    }
  }
}
