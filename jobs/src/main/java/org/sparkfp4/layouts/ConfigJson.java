package org.sparkfp4.layouts;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The output's config.json. */
final class ConfigJson {
  private static final String QUANTIZATION = "quantization_config";

  private ConfigJson() {}

  /** The source's config.json with {@code quantization} in place of whatever it says of quantization. */
  static ConfigFile with(ObjectNode source, ObjectNode quantization) {
    ObjectNode config = source.deepCopy();
    config.remove(QUANTIZATION);
    if (config.get("text_config") instanceof ObjectNode nested) {
      nested.remove(QUANTIZATION);
    }

    config.set(QUANTIZATION, quantization);
    return new ConfigFile("config.json", config);
  }

  static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }
}
