package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;

/**
 * The container from which TensorRT Edge-LLM takes the experts of all layers: one file, and what config.json says of it.
 */
public final class ExternalWeights {
  /** The container's name. */
  public static final String FILE = "external_nvfp4_moe_weights.safetensors";

  private static final String KEY = "external_weight_files";
  private static final String KIND = "nvfp4_moe_weights";

  private ExternalWeights() {}

  /**
   * Says in a config.json what the container has.
   *
   * @param tensors its tensors' names, in its order
   */
  public static void describe(ObjectNode config, List<String> tensors) {
    ArrayNode entries = config.get(KEY) instanceof ArrayNode others ? others : config.putArray(KEY);
    ObjectNode entry = entries.addObject().put("file", FILE).put("kind", KIND);
    ArrayNode names = entry.putArray("tensors");
    tensors.forEach(names::add);
  }

  /** Takes what it says of one away; entries of other kinds stay. */
  public static void forget(ObjectNode config) {
    if (config.get(KEY) instanceof ArrayNode entries) {
      for (int i = entries.size() - 1; i >= 0; i--) {
        if (entries.path(i).path("kind").asText().equals(KIND)) {
          entries.remove(i);
        }
      }

      if (entries.isEmpty()) {
        config.remove(KEY);
      }
    }
  }
}
