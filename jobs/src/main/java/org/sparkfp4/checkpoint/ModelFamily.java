package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * How the models of a family name their tensors, and what those are for.
 *
 * <p>A name is looked up with its whole-number parts replaced by a placeholder, so that a lookup costs the same however
 * many names the family has.
 */
public final class ModelFamily {
  static final String WEIGHT = ".weight";

  private final String name;
  private final List<String> modelTypes;
  private final List<String> architectures;
  private final String expertsKey;
  private final String mtpKey;
  private final List<String> layerPrefixes = new ArrayList<>();
  private final Map<String, Known> modules = new HashMap<>();
  private final Map<String, Role> openModules = new HashMap<>();
  private final List<String> heads = new ArrayList<>();

  /**
   * @param name what plans and messages call it
   * @param modelTypes its model_type values
   * @param architectures its architectures, where they tell families apart
   * @param prefixes what may stand before every name, the empty text included
   * @param layers module path of a layer, with {@code {layer}}
   * @param expertsKey key of config.json with the number of routed experts, null for a family without
   * @param mtpKey key of config.json with the number of layers behind the last that predict further tokens, null for a
   *     family without
   * @param blocks what its layers are made of
   * @param kept modules that are never quantized, by role; one that ends in {@code .*} stands for all below it
   */
  ModelFamily(
      String name,
      List<String> modelTypes,
      List<String> architectures,
      List<String> prefixes,
      String layers,
      String expertsKey,
      String mtpKey,
      List<Block> blocks,
      Map<Role, List<String>> kept) {
    this.name = name;
    this.modelTypes = List.copyOf(modelTypes);
    this.architectures = List.copyOf(architectures);
    this.expertsKey = expertsKey;
    this.mtpKey = mtpKey;
    for (String prefix : prefixes) {
      layerPrefixes.add(prefix + layers.replace("{layer}", ""));
      for (Block block : blocks) {
        block.linears().keySet().forEach(linear ->
            modules.put(key(prefix + block.path() + "." + linear), new Known(block.role(), block, linear)));
      }

      kept.forEach((role, paths) -> paths.forEach(path -> keep(role, prefix + path)));
    }
  }

  /**
   * The family, of those that come with the product, of a checkpoint.
   *
   * @param config content of its config.json
   * @throws IllegalArgumentException if no family is that of the config; the message lists the known model types
   */
  public static ModelFamily of(JsonNode config) {
    return ModelFamilies.builtIn().of(new ModelConfig(config));
  }

  private void keep(Role role, String path) {
    if (path.endsWith(".*")) {
      openModules.put(path.substring(0, path.length() - 1), role);
    } else {
      modules.put(key(path), new Known(role, null, null));
    }

    if (role == Role.LM_HEAD) {
      heads.add(path);
    }
  }

  public String name() {
    return name;
  }

  List<String> modelTypes() {
    return modelTypes;
  }

  List<String> architectures() {
    return architectures;
  }

  /** Whether the family's models have routed experts. */
  public boolean hasExperts() {
    return expertsKey != null;
  }

  String expertsKey() {
    return expertsKey;
  }

  Optional<String> mtpKey() {
    return Optional.ofNullable(mtpKey);
  }

  List<String> heads() {
    return heads;
  }

  /** The role of the module that a tensor's name belongs to, layers behind the model's last one not told apart. */
  public Role role(String tensor) {
    Known known = known(tensor.substring(0, Math.max(0, tensor.lastIndexOf('.'))));
    if (known != null) {
      return known.role();
    }

    for (Map.Entry<String, Role> open : openModules.entrySet()) {
      if (tensor.startsWith(open.getKey())) {
        return open.getValue();
      }
    }

    return Role.OTHER;
  }

  /** What the family says of a module, or null. */
  Known known(String module) {
    return modules.get(key(module));
  }

  /** The index of the layer that a tensor's name is of, or -1. */
  int layer(String tensor) {
    for (String prefix : layerPrefixes) {
      if (tensor.startsWith(prefix)) {
        int end = tensor.indexOf('.', prefix.length());
        String index = end < 0 ? "" : tensor.substring(prefix.length(), end);
        if (isIndex(index)) {
          return Integer.parseInt(index);
        }
      }
    }

    return -1;
  }

  private static String key(String path) {
    StringBuilder key = new StringBuilder(path.length());
    int begin = 0;
    while (begin <= path.length()) {
      int end = path.indexOf('.', begin);
      end = end < 0 ? path.length() : end;
      String part = path.substring(begin, end);
      key.append(isIndex(part) || part.startsWith("{") ? "#" : part).append('.');
      begin = end + 1;
    }

    return key.toString();
  }

  /** Whether a part of a name is a number that an int holds. */
  private static boolean isIndex(String part) {
    for (int i = 0; i < part.length(); i++) {
      if (part.charAt(i) < '0' || part.charAt(i) > '9') {
        return false;
      }
    }

    return !part.isEmpty() && part.length() < 10;
  }

  /**
   * A module that the table names.
   *
   * @param block the block that it is part of, or null
   * @param linear its name in the block, or null
   */
  record Known(Role role, Block block, String linear) {}
}
