package org.sparkfp4.verify;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.formats.CodeType;

/** Reads what config.json says of quantization in the words of compressed-tensors. */
final class GroupClaimReader {
  private static final String FILE = Checkpoint.CONFIG;
  private static final String NVFP4 = "nvfp4-pack-quantized";
  private static final String MIXED = "mixed-precision";
  private static final Pattern SIZE = Pattern.compile("(\\d{1,9})x(\\d{1,9})");

  private final Differences differences;
  private final RequiredKeys keys;

  GroupClaimReader(Differences differences) {
    this.differences = differences;
    this.keys = new RequiredKeys(FILE, differences);
  }

  void add(JsonNode quantization, List<QuantizationClaim> claims) {
    keys.expect(quantization, "quant_method", "compressed-tensors");
    List<JsonNode> nvfp4 = new ArrayList<>();
    List<StoredClaim> stored = new ArrayList<>();
    for (JsonNode group : keys.objects(quantization, "config_groups").values()) {
      if (format(group, quantization).equals(NVFP4)) {
        nvfp4.add(group);
      } else {
        stored.add(new StoredClaim(form(group, format(group, quantization)), patterns(group, "targets")));
      }
    }

    if (nvfp4.size() != 1) {
      differences.add(FILE + " has " + nvfp4.size() + " config_groups of format " + NVFP4 + "; the tensors are of one");
      return;
    }

    if (!stored.isEmpty()) {
      keys.expect(quantization, "format", MIXED);
    }

    JsonNode group = nvfp4.get(0);
    for (Map.Entry<String, String> entry : Map.of(
        "num_bits", "4", "type", "float", "symmetric", "true", "strategy", "tensor_group", "group_size", "16")
        .entrySet()) {
      keys.expect(group.path("weights"), entry.getKey(), entry.getValue());
    }

    if (!keys.names(group, "targets").equals(List.of("Linear"))) {
      differences.add(FILE + " has the targets " + group.path("targets") + "; only [\"Linear\"] can be verified");
    }

    keys.expectPresent(quantization, "ignore");
    claims.add(new QuantizationClaim(
        FILE, !group.path("input_activations").isObject(), patterns(quantization, "ignore"), List.of(), stored,
        false));
  }

  private static String format(JsonNode group, JsonNode quantization) {
    return (group.path("format").isTextual() ? group : quantization).path("format").asText();
  }

  private StoredForm form(JsonNode group, String format) {
    JsonNode weights = group.path("weights");
    JsonNode activations = group.path("input_activations");
    boolean staticActivations =
        activations.isObject() && !activations.path("dynamic").isTextual() && !activations.path("dynamic").asBoolean();
    CodeType codes = switch (format) {
      case "float-quantized", "naive-quantized" -> CodeType.E4M3;
      case "pack-quantized" -> CodeType.INT4;
      case "mxfp4-pack-quantized" -> CodeType.E2M1;
      default -> {
        differences.add(FILE + " has a config group of format \"" + format + "\", which cannot be verified");
        yield CodeType.E4M3;
      }
    };
    keys.expect(weights, "num_bits", codes == CodeType.E4M3 ? "8" : "4");
    keys.expect(weights, "type", codes == CodeType.INT4 ? "int" : "float");
    long size = weights.path("group_size").asLong();
    return switch (weights.path("strategy").asText(size > 0 ? "group" : "tensor")) {
      case "tensor" -> new StoredForm(codes, 0, 0, staticActivations);
      case "channel" -> new StoredForm(codes, 1, 0, staticActivations);
      case "block" -> blocks(codes, weights.path("block_structure"), staticActivations);
      default -> new StoredForm(codes, 1, size, staticActivations);
    };
  }

  /** Of [128, 128], or of "128x128". */
  private static StoredForm blocks(CodeType codes, JsonNode size, boolean staticActivations) {
    Matcher text = SIZE.matcher(size.asText());
    return text.matches()
        ? new StoredForm(codes, Long.parseLong(text.group(1)), Long.parseLong(text.group(2)), staticActivations)
        : new StoredForm(codes, size.path(0).asLong(), size.path(1).asLong(), staticActivations);
  }

  private List<ModulePattern> patterns(JsonNode object, String key) {
    List<ModulePattern> patterns = new ArrayList<>();
    for (String entry : keys.names(object, key)) {
      try {
        patterns.add(ModulePattern.nameOrRegex(entry));
      } catch (PatternSyntaxException e) {
        differences.add(FILE + " has \"" + entry + "\" for modules, which is no regular expression: "
            + e.getDescription());
      }
    }

    return patterns;
  }
}
