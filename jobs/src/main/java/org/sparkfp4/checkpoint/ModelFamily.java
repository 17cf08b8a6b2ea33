package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * How the models of a family name their tensors, and what those are for.
 *
 * <p>A name is looked up with its whole-number parts replaced by a placeholder, so that a lookup costs the same however
 * many names the family has.
 */
public final class ModelFamily {
  static final String WEIGHT = ".weight";

  /** What the biases of stacked layers are called after the stack. */
  static final String BIAS = "_bias";

  /** How modules of norms end in every family: {@code q_norm}, {@code input_layernorm}, {@code LayerNorm}, {@code norm_f}. */
  private static final Pattern NORM = Pattern.compile("norm(_f|\\d+)?$", Pattern.CASE_INSENSITIVE);

  private final String name;
  private final List<String> modelTypes;
  private final List<String> architectures;
  private final String expertsKey;
  private final String mtpKey;
  private final boolean everyLayerFed;
  private final String digest;
  private final List<String> layerPrefixes = new ArrayList<>();
  private final Map<String, Known> modules = new HashMap<>();
  private final Map<String, KnownStack> stacks = new HashMap<>();
  private final Map<String, Role> openModules = new HashMap<>();
  private int longestOpen;
  private final List<String> heads = new ArrayList<>();

  /**
   * @param entry the family's entry in a table
   * @param blocks what its layers are made of
   * @param digest of the file that the entry is from; the empty text for the table that comes with the product
   */
  ModelFamily(FamilyEntry entry, List<Block> blocks, String digest) {
    this.name = entry.name();
    this.modelTypes = entry.modelTypes();
    this.architectures = entry.architectures();
    this.expertsKey = entry.experts();
    this.mtpKey = entry.mtp();
    this.everyLayerFed = !entry.layersWithoutMlp();
    this.digest = digest;
    for (String layer : entry.spellings(entry.layers())) {
      layerPrefixes.add(layer.replace("{layer}", ""));
    }

    blocks.forEach(block -> {
      entry.spellings(block.path()).forEach(path -> addBlock(path, block));
      if (!block.stacks().isEmpty()) {
        Block stacked = block.stacked();
        entry.spellings(stacked.path()).forEach(path -> {
          addBlock(path, stacked);
          block.stacks().forEach((stack, of) -> {
            for (StackPart part : StackPart.values()) {
              stacks.put(key(path + "." + stack + part.suffix()), new KnownStack(block, stack, of, part));
            }
          });
        });
      }
    });
    entry.kept().forEach((role, paths) ->
        paths.forEach(path -> entry.spellings(path).forEach(spelled -> keep(role, spelled))));
  }

  private void addBlock(String path, Block block) {
    block.linears().keySet().forEach(linear ->
        modules.put(key(path + "." + linear), new Known(block.role(), block, linear)));
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
      String key = key(path.substring(0, path.length() - 2));
      openModules.put(key, role);
      longestOpen = Math.max(longestOpen, key.length());
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

  /** SHA-256 of the file that a user gave for the family; the empty text of one that comes with the product. */
  public String digest() {
    return digest;
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

  /** Whether every layer has an MLP or experts; in hybrid models a layer may be an attention or a mixer alone. */
  boolean everyLayerFed() {
    return everyLayerFed;
  }

  List<String> heads() {
    return heads;
  }

  /** The role of the module that a tensor's name belongs to, layers behind the model's last one not told apart. */
  public Role role(String tensor) {
    String module = tensor.substring(0, Math.max(0, tensor.lastIndexOf('.')));
    Known known = known(module);
    if (known != null) {
      return known.role();
    }

    // stacked biases, which no module of their own has
    KnownStack stack = tensor.endsWith(BIAS) ? stack(tensor.substring(0, tensor.length() - BIAS.length())) : null;
    if (stack != null) {
      return stack.block().role();
    }

    // from the longest that may be one: a name of very many parts costs no more than the table's own
    String key = key(module);
    for (int end = key.lastIndexOf('.', longestOpen - 1); end > 0; end = key.lastIndexOf('.', end - 1)) {
      Role open = openModules.get(key.substring(0, end + 1));
      if (open != null) {
        return open;
      }
    }

    return NORM.matcher(module).find() ? Role.NORM : Role.OTHER;
  }

  /** What the family says of a module, or null. */
  Known known(String module) {
    return modules.get(key(module));
  }

  /** What the family says of a tensor that may stack the experts of a layer, or null. */
  KnownStack stack(String tensor) {
    return stacks.isEmpty() ? null : stacks.get(key(tensor));
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

  /** A path with its whole numbers replaced and a dot behind every part. */
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

  /**
   * A tensor that stacks layers of the experts.
   *
   * @param block the experts
   * @param name the stack's name
   * @param part what of it the tensor holds
   */
  record KnownStack(Block block, String name, Stack stack, StackPart part) {}
}
