package org.sparkfp4.layouts;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The modules that a runtime builds for those that a checkpoint names: it fuses some, and all experts of a layer. */
final class RuntimeModules {
  static final Map<String, List<String>> FUSED = Map.of(
      "qkv_proj", List.of("q_proj", "k_proj", "v_proj"),
      "qkv", List.of("query", "key", "value"),
      "gate_up_proj", List.of("gate_proj", "up_proj"),
      "fused_qkv_a_proj", List.of("q_a_proj", "kv_a_proj_with_mqa"));

  private RuntimeModules() {}

  static Set<String> of(Iterable<String> modules) {
    Set<String> built = new LinkedHashSet<>();
    for (String module : modules) {
      built.add(of(module));
    }

    return built;
  }

  private static String of(String module) {
    int experts = module.indexOf(".experts.");
    if (experts >= 0) {
      return module.substring(0, experts) + ".experts";
    }

    int dot = module.lastIndexOf('.');
    for (Map.Entry<String, List<String>> fused : FUSED.entrySet()) {
      if (fused.getValue().contains(module.substring(dot + 1))) {
        return module.substring(0, dot + 1) + fused.getKey();
      }
    }

    return module;
  }
}
