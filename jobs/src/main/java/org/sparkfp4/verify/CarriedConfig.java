package org.sparkfp4.verify;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import java.util.Set;
import org.sparkfp4.checkpoint.Checkpoint;

/** Whether a config.json says of the model what the source's says; what is said of quantization may differ. */
final class CarriedConfig {
  private static final Set<String> OF_QUANTIZATION = Set.of("quantization_config", "compression_config", "expert_dtype");

  private final Differences differences;

  CarriedConfig(Differences differences) {
    this.differences = differences;
  }

  void check(JsonNode source, JsonNode quantized) {
    for (Map.Entry<String, JsonNode> field : source.properties()) {
      JsonNode found = quantized.path(field.getKey());
      if (!OF_QUANTIZATION.contains(field.getKey()) && !ofModel(found).equals(ofModel(field.getValue()))) {
        differences.add(Checkpoint.CONFIG + " has " + field.getKey() + " " + (found.isMissingNode() ? "missing" : found)
            + ", in the source it is " + field.getValue());
      }
    }
  }

  /** A text_config may have a quantization of its own. */
  private static JsonNode ofModel(JsonNode value) {
    return value instanceof ObjectNode object ? object.deepCopy().without(OF_QUANTIZATION) : value;
  }
}
