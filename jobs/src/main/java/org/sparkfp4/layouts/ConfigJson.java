package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.plan.ConfigFile;

/** The output's config.json. */
final class ConfigJson {
  private static final String QUANTIZATION = "quantization_config";

  /** Keys that say how the source is stored, which the output is not. */
  private static final List<String> OF_SOURCE = List.of(QUANTIZATION, "compression_config", "expert_dtype");

  private ConfigJson() {}

  /** The source's config.json with {@code quantization} in place of whatever it says of quantization. */
  static ConfigFile with(ObjectNode source, ObjectNode quantization) {
    ObjectNode config = source.deepCopy();
    config.remove(OF_SOURCE);
    if (config.get("text_config") instanceof ObjectNode nested) {
      nested.remove(OF_SOURCE);
    }

    config.set(QUANTIZATION, quantization);
    return new ConfigFile(Checkpoint.CONFIG, config);
  }

  /** The same for an output of which the rest of the source's config.json, how it is stored included, stays true. */
  static ConfigFile withStorage(ObjectNode source, ObjectNode quantization) {
    ObjectNode config = source.deepCopy();
    config.set(QUANTIZATION, quantization);
    return new ConfigFile(Checkpoint.CONFIG, config);
  }

  static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }
}
