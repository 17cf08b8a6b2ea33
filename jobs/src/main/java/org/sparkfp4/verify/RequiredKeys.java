package org.sparkfp4.verify;

import com.fasterxml.jackson.databind.JsonNode;

/** What a configuration file must have; what it lacks is a difference. */
record RequiredKeys(String file, Differences differences) {
  void expect(JsonNode object, String key, String value) {
    if (!object.path(key).asText().equals(value)) {
      differences.add(file + " has " + key + " " + (object.has(key) ? object.get(key) : "missing") + ", must be "
          + value);
    }
  }

  void expectPresent(JsonNode object, String key) {
    if (!object.has(key)) {
      differences.add(file + " has no " + key + ", without which loaders refuse the checkpoint");
    }
  }
}
