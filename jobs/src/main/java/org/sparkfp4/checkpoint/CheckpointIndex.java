package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.InputStream;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.Utf8Json;

/**
 * {@code model.safetensors.index.json}: which shard holds which tensor.
 *
 * @param weightMap from tensor name to the shard's name, a plain name inside the folder; in the order of the file
 */
public record CheckpointIndex(Map<String, String> weightMap) {
  public static final String NAME = "model.safetensors.index.json";

  private static final JsonFactory JSON = JsonFactory.builder()
      .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
      .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
      .build();

  public CheckpointIndex {
    weightMap = Collections.unmodifiableMap(new LinkedHashMap<>(weightMap));
  }

  /** Reads the index of a folder. */
  static CheckpointIndex read(FileSystem fileSystem, Path folder) throws IOException {
    try (InputStream in = fileSystem.open(new Path(folder, NAME))) {
      return parse(folder, in);
    }
  }

  /**
   * Parses an index.
   *
   * @throws InvalidCheckpointException when it is no JSON object with a {@code weight_map} of strings, names a tensor
   *     twice, or names a file that is not directly in the folder
   */
  static CheckpointIndex parse(Object folder, InputStream in) throws IOException {
    try (JsonParser json = JSON.createParser(Utf8Json.reader(in))) {
      return new CheckpointIndex(weightMap(folder, json));
    } catch (JsonProcessingException e) {
      throw new InvalidCheckpointException(folder, NAME + " is no JSON: " + e.getOriginalMessage(), e);
    }
  }

  /**
   * The file's content.
   *
   * @param totalSize bytes of all tensors
   */
  public ObjectNode json(long totalSize) {
    ObjectNode index = JsonNodeFactory.instance.objectNode();
    index.putObject("metadata").put("total_size", totalSize);
    ObjectNode shards = index.putObject("weight_map");
    weightMap.forEach(shards::put);
    return index;
  }

  private static Map<String, String> weightMap(Object folder, JsonParser json) throws IOException {
    if (json.nextToken() != JsonToken.START_OBJECT) {
      throw new InvalidCheckpointException(folder, NAME + " is no JSON object");
    }

    Map<String, String> weightMap = null;
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String field = json.currentName();
      JsonToken value = json.nextToken();
      if (!field.equals("weight_map")) {
        json.skipChildren();
      } else if (weightMap != null) {
        throw new InvalidCheckpointException(folder, NAME + " has two weight_map");
      } else if (value != JsonToken.START_OBJECT) {
        throw new InvalidCheckpointException(folder, NAME + ": weight_map is no object");
      } else {
        weightMap = entries(folder, json);
      }
    }

    if (json.nextToken() != null) {
      throw new InvalidCheckpointException(folder, NAME + " goes on after its JSON object");
    }

    if (weightMap == null || weightMap.isEmpty()) {
      throw new InvalidCheckpointException(folder, NAME + " maps no tensor: it has no weight_map or an empty one");
    }

    return weightMap;
  }

  private static Map<String, String> entries(Object folder, JsonParser json) throws IOException {
    Map<String, String> entries = new LinkedHashMap<>();
    Map<String, String> files = new LinkedHashMap<>();
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String tensor = json.currentName();
      if (json.nextToken() != JsonToken.VALUE_STRING) {
        throw new InvalidCheckpointException(folder, NAME + ": the shard of tensor " + tensor + " is no string");
      }

      String text = json.getText();
      String file = files.get(text);
      if (file == null) {
        checkFileName(folder, tensor, text);
        files.put(text, text);
        file = text;
      }

      if (entries.put(tensor, file) != null) {
        throw new InvalidCheckpointException(folder, NAME + " names tensor " + tensor + " twice");
      }
    }

    return entries;
  }

  /** By the text alone: symbolic links inside the folder may lead anywhere, as in Hugging Face's cache. */
  private static void checkFileName(Object folder, String tensor, String file) throws InvalidCheckpointException {
    boolean plain = !file.isBlank()
        && !file.equals(".")
        && !file.contains("..")
        && file.chars().noneMatch(c -> c == '/' || c == '\\' || c == ':' || Character.isISOControl(c));
    if (!plain) {
      throw new InvalidCheckpointException(
          folder,
          NAME + " maps tensor " + tensor + " to \"" + file + "\", which is no name of a file directly in the folder");
    }
  }
}
