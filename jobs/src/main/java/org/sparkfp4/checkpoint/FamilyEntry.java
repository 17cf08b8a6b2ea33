package org.sparkfp4.checkpoint;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A family in a table of families.
 *
 * @param name what plans and messages call it
 * @param modelTypes its model_type values
 * @param architectures its architectures, where they tell families apart
 * @param prefixes what may stand before every name, the empty text included
 * @param bases what may stand in place of {@code model.} at the beginning of a name
 * @param layers module path of a layer, with {@code {layer}}
 * @param experts key of config.json with the number of routed experts, null for a family without
 * @param mtp key of config.json with the number of layers behind the last that predict further tokens, null for a family
 *     without
 * @param layersWithoutMlp whether a layer may have neither an MLP nor experts
 * @param blocks names of the blocks that its layers are made of
 * @param kept modules that are never quantized, by role; one that ends in {@code .*} stands for all below it
 */
record FamilyEntry(
    String name,
    List<String> modelTypes,
    List<String> architectures,
    List<String> prefixes,
    List<String> bases,
    String layers,
    String experts,
    String mtp,
    boolean layersWithoutMlp,
    List<String> blocks,
    Map<Role, List<String>> kept) {
  private static final String BASE = "model.";

  FamilyEntry {
    if (name == null || name.isBlank()) {
      throw new IllegalArgumentException("Invalid model family: it has no name");
    }

    modelTypes = orEmpty(modelTypes);
    architectures = orEmpty(architectures);
    prefixes = prefixes == null ? List.of("") : List.copyOf(prefixes);
    bases = bases == null ? List.of(BASE) : List.copyOf(bases);
    blocks = orEmpty(blocks);
    kept = kept == null ? Map.of() : Map.copyOf(kept);
    require(!modelTypes.isEmpty() || !architectures.isEmpty(), name, "it has neither model_types nor architectures");
    require(layers != null && layers.endsWith("{layer}"), name, "layers is " + layers + ", must end in {layer}");
    require(!blocks.isEmpty(), name, "it has no blocks");
  }

  private static List<String> orEmpty(List<String> list) {
    return list == null ? List.of() : List.copyOf(list);
  }

  private static void require(boolean holds, String name, String problem) {
    if (!holds) {
      throw new IllegalArgumentException("Invalid model family " + name + ": " + problem);
    }
  }

  ModelFamily resolve(Map<String, Block> known, String digest) {
    List<Block> resolved = new ArrayList<>();
    for (String block : blocks) {
      require(known.containsKey(block), name, "there is no block " + block);
      resolved.add(known.get(block));
    }

    boolean routed = resolved.stream().anyMatch(block -> block.role() == Role.ROUTED_EXPERT);
    require(routed == (experts != null), name,
        "experts, the key of config.json with their number, must be there if and only if a block is of routed experts");
    return new ModelFamily(this, resolved, digest);
  }

  /** The ways in which checkpoints of the family may spell a path. */
  Set<String> spellings(String path) {
    Set<String> spellings = new LinkedHashSet<>();
    for (String prefix : prefixes) {
      if (path.startsWith(BASE)) {
        bases.forEach(base -> spellings.add(prefix + base + path.substring(BASE.length())));
      } else {
        spellings.add(prefix + path);
      }
    }

    return spellings;
  }
}
