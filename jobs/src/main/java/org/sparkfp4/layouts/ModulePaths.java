package org.sparkfp4.layouts;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
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

  /** Every part of a module's path, the root first; walked as a list, since a hostile name may have tens of thousands. */
  private final List<Node> nodes = new ArrayList<>();

  /** What a module is: NVFP4, or kept in a format of the source, or, where that is null, in high precision. */
  private record Precision(boolean quantized, KeptFormat format) {}

  /**
   * @throws IllegalArgumentException if modules that runtimes fuse stay in different precisions of the source
   */
  ModulePaths(QuantizationPlan plan) {
    nodes.add(new Node("", null));
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

    nodes.forEach(ModulePaths::requireAlike);
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
    for (Node node : nodes) {
      // an entry above covers all that is below it
      if (node.isMixed(wanted)) {
        collect(node, wanted, found);
      }
    }

    found.sort(Comparator.comparing(ModulePath::path, new NaturalOrder()));
    return found;
  }

  private void add(String module, Precision precision) {
    Node node = nodes.get(0);
    node.below.add(precision);
    for (String part : module.split("\\.")) {
      Node child = node.children.get(part);
      if (child == null) {
        child = new Node(part, node);
        node.children.put(part, child);
        nodes.add(child);
      }

      node = child;
      node.below.add(precision);
    }
  }

  private static void collect(Node node, Predicate<Precision> wanted, List<ModulePath> found) {
    for (Node child : node.children.values()) {
      if (!child.isWhole(wanted)) {
        continue;
      }

      if (child.children.isEmpty()) {
        found.add(new ModulePath(child.path(), ModulePath.Extent.MODULE));
      } else {
        boolean shared = isPrefixOfOthers(child, wanted);
        found.add(new ModulePath(child.path(), shared ? ModulePath.Extent.BELOW : ModulePath.Extent.PREFIX));
      }
    }

    // a runtime that undoes no fusion asks for the fused name: as where q, k and v are kept, but not the output
    FUSED.forEach((name, parts) -> {
      List<Node> present = node.children(parts);
      if (present.size() == parts.size() && present.stream().allMatch(part -> part.isWhole(wanted))) {
        found.add(new ModulePath(node.path(name), ModulePath.Extent.MODULE));
      }
    });
  }

  /** Whether names that begin as the node's may be of other modules; indices of layers always may, and so may no name. */
  private static boolean isPrefixOfOthers(Node node, Predicate<Precision> wanted) {
    return node.name.isEmpty()
        || Character.isDigit(node.name.charAt(0))
        || node.parent.children.values().stream()
            .anyMatch(other -> !other.isWhole(wanted) && other.name.startsWith(node.name));
  }

  /** Runtimes give a fused module one precision. What is quantized in part was chosen so. */
  private static void requireAlike(Node node) {
    FUSED.forEach((name, parts) -> requireAlike(node, node.children(parts), name));
    requireAlike(node, node.children(List.of(EXPERTS)), EXPERTS);
  }

  private static void requireAlike(Node node, List<Node> parts, String fused) {
    if (parts.isEmpty()) {
      return;
    }

    Set<Precision> precisions = new LinkedHashSet<>();
    parts.forEach(part -> precisions.addAll(part.below));
    if (precisions.size() > 1 && precisions.stream().noneMatch(Precision::quantized)) {
      throw new IllegalArgumentException("Cannot keep the source's precision in " + node.path() + ": runtimes fuse its "
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

  /** A part of module paths, and the precisions of the modules there and below. */
  private static final class Node {
    private final String name;
    private final Node parent;
    private final Map<String, Node> children = new LinkedHashMap<>(2);
    private final Set<Precision> below = new LinkedHashSet<>(2);

    /** @param parent null of the root */
    Node(String name, Node parent) {
      this.name = name;
      this.parent = parent;
    }

    /** The children that have these names, as far as there are any. */
    List<Node> children(List<String> names) {
      List<Node> found = new ArrayList<>();
      for (String name : names) {
        Node child = children.get(name);
        if (child != null) {
          found.add(child);
        }
      }

      return found;
    }

    /** Whether all modules below are wanted. */
    boolean isWhole(Predicate<Precision> wanted) {
      for (Precision precision : below) {
        if (!wanted.test(precision)) {
          return false;
        }
      }

      return true;
    }

    /** Whether some modules below are wanted, and others not; of the root, which no entry names, always. */
    boolean isMixed(Predicate<Precision> wanted) {
      return parent == null || !isWhole(wanted) && !isWhole(wanted.negate());
    }

    String path() {
      return parent == null ? "" : parent.path(name);
    }

    /** The path of a child of this name, be there one or not. */
    String path(String child) {
      Deque<String> parts = new ArrayDeque<>();
      parts.addFirst(child);
      for (Node node = this; node.parent != null; node = node.parent) {
        parts.addFirst(node.name);
      }

      return String.join(".", parts);
    }
  }
}
