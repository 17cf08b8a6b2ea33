package org.sparkfp4.checkpoint;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Linear layers that lie together in a model and have one role: an expert, an MLP, an attention.
 *
 * @param role their role
 * @param path module path that they share, with {@code {layer}} and {@code {expert}} for the indices
 * @param linears name of each layer below the path, and the keys of config.json that give its {@code [rows, K]}, several
 *     with a bar between them for the first that is there; an empty list where the config does not say
 * @param fused names that runtimes fuse into one matrix, in their order: they must share a global scale
 * @param optional names that some models of the family do not have
 * @param stacks tensors, beside the experts' own paths, that may hold the layers of all experts instead
 * @param batched whether runtimes want the experts stacked in the output too, where its layout has a form for that
 */
record Block(
    Role role,
    String path,
    Map<String, List<String>> linears,
    List<List<String>> fused,
    Set<String> optional,
    Map<String, Stack> stacks,
    boolean batched) {
  static final String EXPERT = ".{expert}";

  Block {
    require(role != null, path, "it has no role");
    require(path != null, path, "it has no path");
    require(linears != null && !linears.isEmpty(), path, "it has no linears");
    linears = Collections.unmodifiableMap(new LinkedHashMap<>(linears));
    fused = fused == null ? List.of() : List.copyOf(fused);
    optional = optional == null ? Set.of() : Set.copyOf(optional);
    stacks = stacks == null ? Map.of() : Collections.unmodifiableMap(new LinkedHashMap<>(stacks));
    for (List<String> group : fused) {
      require(linears.keySet().containsAll(group), path,
          "fused " + group + " names a layer that is not one of " + linears.keySet());
    }

    for (Map.Entry<String, List<String>> linear : linears.entrySet()) {
      require(linear.getValue().isEmpty() || linear.getValue().size() == 2, path,
          "linears." + linear.getKey() + " has " + linear.getValue() + ", must be empty or the keys of rows and K");
    }

    for (Map.Entry<String, Stack> stack : stacks.entrySet()) {
      requireStack(path, linears, "stacks." + stack.getKey(), stack.getValue());
    }

    require((role == Role.ROUTED_EXPERT) == path.endsWith(EXPERT) || (batched && stacks.isEmpty()), path,
        "its role is " + role + "; a path ends in " + EXPERT + " if and only if it is of a routed expert");
  }

  private static void requireStack(String path, Map<String, List<String>> linears, String field, Stack stack) {
    require(linears.keySet().containsAll(stack.linears()) && !stack.linears().isEmpty(), path,
        field + " has linears " + stack.linears() + ", must be some of " + linears.keySet());
    require(stack.linears().stream().noneMatch(linear -> linears.get(linear).isEmpty()), path,
        field + " needs the keys of config.json for rows and K of " + stack.linears());
    require(!stack.orders().isEmpty(), path, field + " has no orders");
  }

  private static void require(boolean holds, String path, String problem) {
    if (!holds) {
      throw new IllegalArgumentException("Invalid block " + path + ": " + problem);
    }
  }

  /** The path of what holds all experts. */
  String expertsPath() {
    return path.substring(0, path.length() - EXPERT.length());
  }

  /** The block of a layer whose experts stay stacked: a linear layer a stack. */
  Block stacked() {
    Map<String, List<String>> names = new LinkedHashMap<>();
    stacks.keySet().forEach(name -> names.put(name, List.of()));
    return new Block(role, expertsPath(), names, List.of(), Set.of(), Map.of(), true);
  }

  boolean isStacked() {
    return batched && stacks.isEmpty();
  }

  /** The sets of layers that share a global scale: the fused ones, then every other by itself. */
  List<List<String>> groups() {
    Set<String> grouped = fused.stream().flatMap(List::stream).collect(Collectors.toSet());
    List<List<String>> groups = new ArrayList<>(fused);
    linears.keySet().stream().filter(linear -> !grouped.contains(linear)).forEach(linear -> groups.add(List.of(linear)));
    return groups;
  }
}
