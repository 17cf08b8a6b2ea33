package org.sparkfp4.layouts;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Whether a runtime leaves a module it builds in high precision, by the rules of its loader. */
@FunctionalInterface
interface LoaderRules {
  boolean isExcluded(String module, List<String> entries);

  /** vLLM, ModelOpt: exact after undoing fusion, then substring, then shell pattern. */
  static boolean vllmModelOpt(String module, List<String> entries) {
    return vllmExact(module, entries)
        || entries.stream().anyMatch(entry -> !entry.equals(module) && module.contains(entry))
        || entries.stream().anyMatch(entry -> shellMatch(entry, module));
  }

  private static boolean vllmExact(String module, List<String> entries) {
    int dot = module.lastIndexOf('.') + 1;
    List<String> parts = RuntimeModules.FUSED.get(module.substring(dot));
    if (parts != null) {
      return sameForAll(module, parts.stream()
          .map(part -> entries.contains(module.substring(0, dot) + part))
          .collect(Collectors.toCollection(TreeSet::new)));
    }

    if (module.contains("experts")) {
      return entries.stream().anyMatch(entry -> entry.contains("experts") && entry.contains(module));
    }

    return entries.contains(module);
  }

  /** TensorRT-LLM: shell pattern on the names it builds. */
  static boolean tensorRtLlm(String module, List<String> entries) {
    return entries.stream().anyMatch(entry -> shellMatch(entry, module));
  }

  /** SGLang, ModelOpt: the whole name as a regular expression in which a star stands for anything. */
  static boolean sglang(String module, List<String> entries) {
    return entries.stream()
        .anyMatch(entry -> Pattern.matches(entry.replace(".", "\\.").replace("*", ".*"), module));
  }

  /** vLLM, compressed-tensors: exact or a regular expression from the start; what is fused by its parts. */
  static boolean compressedTensors(String module, List<String> entries) {
    int dot = module.lastIndexOf('.') + 1;
    List<String> parts = List.of(module);
    if (module.endsWith(".experts")) {
      parts = List.of(module + ".0.gate_proj", module + ".0.up_proj", module + ".0.down_proj");
    } else if (RuntimeModules.FUSED.containsKey(module.substring(dot)) && !entries.contains(module)) {
      parts = RuntimeModules.FUSED.get(module.substring(dot)).stream()
          .map(part -> module.substring(0, dot) + part)
          .toList();
    }

    return sameForAll(module, parts.stream()
        .map(part -> entries.stream().anyMatch(entry -> entry.startsWith("re:")
            ? Pattern.compile(entry.substring(3)).matcher(part).lookingAt()
            : entry.equals(part)))
        .collect(Collectors.toCollection(TreeSet::new)));
  }

  /**
   * vLLM, compressed-tensors: the group that has a module, by its name, then by its class, Linear, then by the parts of
   * what is fused; its number.
   */
  static int compressedTensorsGroup(String module, List<List<String>> targets) {
    String asked = module.endsWith(".experts") ? module + ".0.gate_proj" : module;
    for (String name : List.of(asked, "Linear")) {
      for (int group = 0; group < targets.size(); group++) {
        if (targets.get(group).stream().anyMatch(target -> matches(target, name))) {
          return group;
        }
      }
    }

    throw new IllegalStateException("no group has " + module);
  }

  private static boolean matches(String target, String name) {
    return target.startsWith("re:")
        ? Pattern.compile(target.substring(3)).matcher(name).lookingAt()
        : target.equals(name);
  }

  /** vLLM, ModelOpt's MIXED_PRECISION: by the name, or by the parts of what is fused; null for what has none. */
  static String modelOptAlgorithm(String module, Map<String, String> layers) {
    if (layers.containsKey(module)) {
      return layers.get(module);
    }

    int dot = module.lastIndexOf('.') + 1;
    Set<String> found = new TreeSet<>();
    RuntimeModules.FUSED.getOrDefault(module.substring(dot), List.of()).stream()
        .map(part -> layers.get(module.substring(0, dot) + part))
        .filter(algorithm -> algorithm != null)
        .forEach(found::add);
    if (found.size() > 1) {
      throw new IllegalStateException("some but not all parts of " + module + " are " + found);
    }

    return found.isEmpty() ? null : found.iterator().next();
  }

  private static boolean sameForAll(String module, Set<Boolean> answers) {
    if (answers.size() != 1) {
      throw new IllegalStateException("some but not all parts of " + module + " are quantized");
    }

    return answers.iterator().next();
  }

  private static boolean shellMatch(String pattern, String module) {
    return Pattern.matches(Pattern.quote(pattern).replace("*", "\\E.*\\Q"), module);
  }
}
