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

  /** Whether a config.json says of storage what the source's says, and only adds to it. */
  void checkStorage(JsonNode source, JsonNode quantized) {
    checkSame("expert_dtype", source.path("expert_dtype"), quantized.path("expert_dtype"));
    JsonNode found = quantized.path("quantization_config");
    source.path("quantization_config").properties().forEach(
        field -> checkSame("quantization_config." + field.getKey(), field.getValue(), found.path(field.getKey())));
  }

  private void checkSame(String key, JsonNode source, JsonNode quantized) {
    if (!quantized.equals(source)) {
      differences.add(Checkpoint.CONFIG + " has " + key + " " + (quantized.isMissingNode() ? "missing" : quantized)
          + ", in the source it is " + source + ", and its weights are stored so");
    }
  }

  /** A text_config may have a quantization of its own. */
  private static JsonNode ofModel(JsonNode value) {
    return value instanceof ObjectNode object ? object.deepCopy().without(OF_QUANTIZATION) : value;
  }
}
