package org.sparkfp4.verify;

import java.util.List;

/**
 * Which layers runtimes fuse into one, which therefore must share one global scale. A table of names, on purpose not
 * the one that quantization goes by.
 */
final class FusedLayers {
  private static final List<List<String>> SIBLINGS = List.of(
      List.of("gate_proj", "up_proj"),
      List.of("w1", "w3"),
      List.of("q_proj", "k_proj", "v_proj"),
      List.of("q_a_proj", "kv_a_proj_with_mqa"),
      List.of("query", "key", "value"));

  private FusedLayers() {}

  /** The modules that are fused with {@code module}, itself among them, whether or not a model has them. */
  static List<String> of(String module) {
    int dot = module.lastIndexOf('.');
    String name = module.substring(dot + 1);
    for (List<String> siblings : SIBLINGS) {
      if (siblings.contains(name)) {
        return siblings.stream().map(sibling -> module.substring(0, dot + 1) + sibling).toList();
      }
    }

    return List.of(module);
  }
}
