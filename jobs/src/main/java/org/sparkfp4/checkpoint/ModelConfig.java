package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;

/** The config.json of a checkpoint. Models of several modalities nest what is asked for here under text_config. */
public final class ModelConfig {
  private static final String NESTED = "text_config";

  private final JsonNode root;

  /**
   * @param root the file's content
   * @throws IllegalArgumentException if it is no JSON object, or missing
   */
  public ModelConfig(JsonNode root) {
    if (!root.isObject()) {
      throw new IllegalArgumentException("Cannot plan without config.json: it names the model family and its sizes; "
          + "give a folder that has one beside the weights");
    }

    this.root = root;
  }

  /**
   * The config.json of a checkpoint.
   *
   * @throws IllegalArgumentException if it has none, naming the folder
   */
  public static ModelConfig of(Checkpoint checkpoint) {
    if (!checkpoint.config().isObject()) {
      throw new IllegalArgumentException("Cannot plan for " + checkpoint.path() + " without config.json: it names the "
          + "model family and its sizes; give a folder that has one beside the weights, and no single file of it");
    }

    return new ModelConfig(checkpoint.config());
  }

  /**
   * The value of a key, of text_config if it has one, and absent where there is none or null.
   *
   * @param keys the key; several with a bar between them for the first that is there
   */
  OptionalLong number(String keys) {
    for (String key : keys.split("\\|")) {
      for (JsonNode level : List.of(root.path(NESTED), root)) {
        JsonNode value = level.path(key);
        if (value.isIntegralNumber() && value.canConvertToLong()) {
          return OptionalLong.of(value.longValue());
        }
      }
    }

    return OptionalLong.empty();
  }

  /**
   * The value of a key that must be there.
   *
   * @throws IllegalArgumentException if it is not
   */
  long require(String keys) {
    return number(keys).orElseThrow(() -> new IllegalArgumentException(
        "Invalid config.json: it has no whole number " + keys.replace("|", " or ")));
  }

  /** The truth value of a key, of text_config if it has one, and absent where there is none or null. */
  public Optional<Boolean> flag(String key) {
    for (JsonNode level : List.of(root.path(NESTED), root)) {
      JsonNode value = level.path(key);
      if (value.isBoolean()) {
        return Optional.of(value.booleanValue());
      }
    }

    return Optional.empty();
  }

  /** The value of a key, of text_config if it has one; the empty text where there is none. */
  String text(String key) {
    JsonNode nested = root.path(NESTED).path(key);
    return (nested.isTextual() ? nested : root.path(key)).asText();
  }

  /**
   * The value of a key that must be there and counts something.
   *
   * @throws IllegalArgumentException if it is not, or is negative, or no 32-bit number
   */
  int requireCount(String key) {
    long value = require(key);
    if (value < 0 || value > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("Invalid config.json: " + key + " is " + value);
    }

    return (int) value;
  }

  /** The outer model_type, then the nested one; those that are there. */
  public List<String> modelTypes() {
    return texts("model_type");
  }

  /** The outer architectures, then the nested ones. */
  List<String> architectures() {
    return texts("architectures");
  }

  /** The quantization_config of the source, or a missing node when the source is not quantized. */
  public JsonNode quantization() {
    JsonNode outer = root.path("quantization_config");
    return outer.isObject() ? outer : root.path(NESTED).path("quantization_config");
  }

  private List<String> texts(String key) {
    List<String> texts = new ArrayList<>();
    for (JsonNode level : List.of(root, root.path(NESTED))) {
      JsonNode value = level.path(key);
      if (value.isTextual()) {
        texts.add(value.textValue());
      }

      value.forEach(element -> texts.add(element.asText()));
    }

    return texts;
  }
}
