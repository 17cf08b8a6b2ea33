package org.sparkfp4.checkpoint;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Linear layers that lie together in a model and have one role: an expert, an MLP, an attention.
 *
 * @param role their role
 * @param path module path that they share, with {@code {layer}} and {@code {expert}} for the indices
 * @param linears name of each layer below the path, and the keys of config.json that give its {@code [rows, K]}; an
 *     empty list where the config does not say
 * @param fused names that runtimes fuse into one matrix, in their order: they must share a global scale
 * @param optional names that some models of the family do not have
 */
record Block(
    Role role, String path, Map<String, List<String>> linears, List<List<String>> fused, Set<String> optional) {
  Block {
    linears = Collections.unmodifiableMap(new LinkedHashMap<>(linears));
    fused = fused == null ? List.of() : List.copyOf(fused);
    optional = optional == null ? Set.of() : Set.copyOf(optional);
    for (List<String> group : fused) {
      if (!linears.keySet().containsAll(group)) {
        throw new IllegalArgumentException(
            "Invalid block " + path + ": fused " + group + " names a layer that is not one of " + linears.keySet());
      }
    }
  }

  /** The sets of layers that share a global scale: the fused ones, then every other by itself. */
  List<List<String>> groups() {
    List<List<String>> groups = new ArrayList<>(fused);
    for (String linear : linears.keySet()) {
      if (fused.stream().noneMatch(group -> group.contains(linear))) {
        groups.add(List.of(linear));
      }
    }

    return groups;
  }
}
