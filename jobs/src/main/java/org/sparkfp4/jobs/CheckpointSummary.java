package org.sparkfp4.jobs;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * What {@code inspect} tells of a checkpoint.
 *
 * @param path the checkpoint's folder
 * @param modelType {@code model_type} of config.json, or null
 * @param quantization {@code quantization_config} of config.json, or null
 * @param shards number of files with tensors
 * @param strayShards safetensors files in the folder that the index does not name
 * @param total all tensors
 * @param dtypes totals by element type
 * @param groups totals by name pattern: the name with a star for each number
 */
record CheckpointSummary(
    String path,
    String modelType,
    JsonNode quantization,
    int shards,
    List<String> strayShards,
    Total total,
    Map<String, Total> dtypes,
    List<Group> groups) {
  private static final Pattern NUMBER = Pattern.compile("(?<=\\.)\\d+(?=\\.)");

  /** Tensors that are counted together. */
  record Total(long tensors, long bytes) {
    static Total of(Collection<LocatedTensor> tensors) {
      return new Total(tensors.size(), tensors.stream().mapToLong(LocatedTensor::length).sum());
    }
  }

  /** Tensors with one name pattern, their element types and shapes. */
  record Group(String pattern, List<String> dtypes, List<String> shapes, long tensors, long bytes) {
    static Group of(String pattern, List<LocatedTensor> tensors) {
      TreeSet<String> dtypes = new TreeSet<>();
      TreeSet<String> shapes = new TreeSet<>();
      for (LocatedTensor tensor : tensors) {
        dtypes.add(tensor.dtype().name());
        shapes.add(tensor.shape().toString());
      }

      Total total = Total.of(tensors);
      return new Group(pattern, List.copyOf(dtypes), List.copyOf(shapes), total.tensors(), total.bytes());
    }
  }

  static CheckpointSummary of(Checkpoint checkpoint) {
    Map<String, List<LocatedTensor>> byType = new TreeMap<>();
    Map<String, List<LocatedTensor>> byPattern = new LinkedHashMap<>();
    for (LocatedTensor tensor : checkpoint.tensors()) {
      byType.computeIfAbsent(tensor.dtype().name(), key -> new ArrayList<>()).add(tensor);
      byPattern.computeIfAbsent(NUMBER.matcher(tensor.name()).replaceAll("*"), key -> new ArrayList<>()).add(tensor);
    }

    Map<String, Total> dtypes = new LinkedHashMap<>();
    byType.forEach((dtype, tensors) -> dtypes.put(dtype, Total.of(tensors)));
    List<Group> groups = new ArrayList<>();
    byPattern.forEach((pattern, tensors) -> groups.add(Group.of(pattern, tensors)));
    return new CheckpointSummary(
        checkpoint.path().toString(),
        checkpoint.config().path("model_type").textValue(),
        quantization(checkpoint.config()),
        checkpoint.shards().size(),
        checkpoint.strayShards(),
        Total.of(checkpoint.tensors()),
        dtypes,
        groups);
  }

  /** Models of several modalities keep it with the rest of the language model's config. */
  private static JsonNode quantization(JsonNode config) {
    for (JsonNode level : List.of(config, config.path("text_config"))) {
      if (level.path("quantization_config").isObject()) {
        return level.path("quantization_config");
      }
    }

    return null;
  }
}
