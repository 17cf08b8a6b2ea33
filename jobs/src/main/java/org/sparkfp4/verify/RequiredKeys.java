package org.sparkfp4.verify;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** What a configuration file must have; what it lacks is a difference. */
record RequiredKeys(String file, Differences differences) {
  /** Characters of a value that messages show. */
  private static final int SHOWN = 200;

  void expect(JsonNode object, String key, String value) {
    if (!object.path(key).asText().equals(value)) {
      differences.add(file + " has " + key + " " + (object.has(key) ? object.get(key) : "missing") + ", must be "
          + value);
    }
  }

  /**
   * The names in a list: loaders stop at a list that is none, and at an entry that is no string.
   *
   * @return those that are strings
   */
  List<String> names(JsonNode object, String key) {
    JsonNode list = object.path(key);
    List<String> names = new ArrayList<>();
    list.forEach(entry -> {
      if (entry.isTextual()) {
        names.add(entry.textValue());
      }
    });
    if (!list.isMissingNode() && (!list.isArray() || names.size() < list.size())) {
      differences.add(file + " has " + key + " " + shortened(list) + ", must be a list of strings");
    }

    return names;
  }

  /** The members of an object that are objects, as all must be; none where it is missing. */
  Map<String, JsonNode> objects(JsonNode object, String key) {
    JsonNode all = object.path(key);
    Map<String, JsonNode> objects = new LinkedHashMap<>();
    all.properties().forEach(member -> {
      if (member.getValue().isObject()) {
        objects.put(member.getKey(), member.getValue());
      }
    });
    if (!all.isMissingNode() && (!all.isObject() || objects.size() < all.size())) {
      differences.add(file + " has " + key + " " + shortened(all) + ", must be an object of objects");
    }

    return objects;
  }

  private static String shortened(JsonNode value) {
    String text = value.toString();
    return text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "…";
  }

  void expectPresent(JsonNode object, String key) {
    if (!object.has(key)) {
      differences.add(file + " has no " + key + ", without which loaders refuse the checkpoint");
    }
  }
}
