package org.sparkfp4.convert;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import org.sparkfp4.checkpoint.Checkpoint;

/**
 * What a quantized checkpoint says of itself.
 *
 * @param json content of its config.json
 */
record SourceConfig(JsonNode json) {
  /**
   * The form in which the checkpoint is described; ModelOpt's where config.json says nothing, as older ones of that
   * producer do.
   */
  ModuleForm form() {
    return ModuleForm.named(method()).orElse(ModuleForm.MODELOPT);
  }

  private String method() {
    return json.path("quantization_config").path("quant_method").asText();
  }

  /** Configurations of other methods would describe an output of whose tensors they say nothing. */
  void requireConvertible() {
    if (json.path("quantization_config").path("quant_algo").asText().equals("MIXED_PRECISION")
        || json.path("quantization_config").path("format").asText().equals("mixed-precision")) {
      throw new IllegalArgumentException("Cannot convert a checkpoint that keeps other quantized formats beside NVFP4:"
          + " no two layouts describe them alike; quantize the source without --keep-source-precision");
    }

    JsonNode ignore = json.path("quantization_config").path("ignore");
    if (!ignore.isMissingNode() && !isListOfStrings(ignore)) {
      throw new IllegalArgumentException("Cannot convert: " + Checkpoint.CONFIG + " has in its quantization_config an "
          + "ignore that is no list of strings, at which loaders stop; give the config.json that belongs to the weights");
    }

    if (!method().isEmpty() && ModuleForm.named(method()).isEmpty()) {
      throw new IllegalArgumentException("Cannot convert: " + Checkpoint.CONFIG + " has quant_method \"" + method()
          + "\" in its quantization_config, and NVFP4 checkpoints have modelopt or compressed-tensors; give the config.json"
          + " that belongs to the weights");
    }
  }

  private static boolean isListOfStrings(JsonNode list) {
    boolean strings = list.isArray();
    for (JsonNode entry : list) {
      strings &= entry.isTextual();
    }

    return strings;
  }

  /** Requires that tensors of a form are not described as those of the other. */
  void requireForm(ModuleForm ofTensors) {
    if (!method().isEmpty() && form() != ofTensors) {
      throw new IllegalArgumentException("Cannot convert: " + Checkpoint.CONFIG + " has quant_method \"" + method()
          + "\" in its quantization_config, but the tensors are those of " + ofTensors.layout()
          + "; give the config.json that belongs to the weights");
    }
  }

  /**
   * How many experts a layer must have: as many as config.json says, where it does, since those behind the last would
   * not be missed otherwise.
   *
   * @param path of the experts, for messages
   * @param found one more than the largest number of an expert
   */
  int experts(String path, int found) {
    for (JsonNode level : List.of(json.path("text_config"), json)) {
      for (String key : List.of("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")) {
        JsonNode number = level.path(key);
        if (number.isIntegralNumber()) {
          if (number.asLong() < found) {
            throw new IllegalArgumentException("Cannot convert " + path + ": it has an expert " + (found - 1)
                + ", but config.json has " + key + " " + number.asLong());
          }

          return Math.toIntExact(Math.min(number.asLong(), found + 1L));
        }
      }
    }

    return found;
  }
}
