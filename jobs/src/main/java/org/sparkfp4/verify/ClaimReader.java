package org.sparkfp4.verify;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.PatternSyntaxException;

/** Reads what configuration files say of quantization; what they say wrongly is a difference. */
final class ClaimReader {
  private static final String CONFIG = "config.json";
  private static final String HF_QUANT_CONFIG = "hf_quant_config.json";
  private static final Map<String, Boolean> WEIGHT_ONLY = Map.of("NVFP4", false, "W4A16_NVFP4", true);

  private final Differences differences;

  ClaimReader(Differences differences) {
    this.differences = differences;
  }

  /**
   * The claims of a checkpoint's files.
   *
   * @param config content of config.json
   * @param hfQuantConfig content of hf_quant_config.json, nested or flat; a missing node where there is none
   */
  List<QuantizationClaim> read(Scheme scheme, JsonNode config, JsonNode hfQuantConfig) {
    JsonNode flat = config.path("quantization_config");
    List<QuantizationClaim> claims = new ArrayList<>();
    if (scheme == Scheme.COMPRESSED_TENSORS) {
      addCompressedTensors(flat, claims);
    } else {
      if (flat.isObject() || hfQuantConfig.isMissingNode()) {
        addFlat(CONFIG, flat, claims);
      }

      if (hfQuantConfig.has("quant_method")) {
        addFlat(HF_QUANT_CONFIG, hfQuantConfig, claims);
      } else if (!hfQuantConfig.isMissingNode()) {
        addNested(hfQuantConfig.path("quantization"), claims);
      }
    }

    return claims;
  }

  private void addFlat(String file, JsonNode quantization, List<QuantizationClaim> claims) {
    expect(file, quantization, "quant_method", "modelopt");
    addModelOpt(file, quantization, "ignore", claims);
  }

  private void addNested(JsonNode quantization, List<QuantizationClaim> claims) {
    expect(HF_QUANT_CONFIG, quantization, "group_size", "16");
    expectPresent(HF_QUANT_CONFIG, quantization, "kv_cache_quant_algo");
    if (quantization.path("quant_algo").asText().equals("W4A16_NVFP4")) {
      differences.add(HF_QUANT_CONFIG + " has quant_algo \"W4A16_NVFP4\" in the nested form, which vLLM refuses");
    }

    addModelOpt(HF_QUANT_CONFIG, quantization, "exclude_modules", claims);
  }

  private void addModelOpt(String file, JsonNode quantization, String excluded, List<QuantizationClaim> claims) {
    String algorithm = quantization.path("quant_algo").asText();
    Boolean weightOnly = WEIGHT_ONLY.get(algorithm);
    if (weightOnly == null) {
      differences.add(file + " has quant_algo \"" + algorithm + "\"; the tensors are of NVFP4 or W4A16_NVFP4");
      return;
    }

    expectPresent(file, quantization, excluded);
    List<ModulePattern> patterns = new ArrayList<>();
    quantization.path(excluded).forEach(entry -> patterns.add(ModulePattern.glob(entry.asText())));
    for (JsonNode group : quantization.path("config_groups")) {
      expect(file, group.path("weights"), "num_bits", "4");
      expect(file, group.path("weights"), "group_size", "16");
    }

    claims.add(new QuantizationClaim(file, weightOnly, patterns));
  }

  private void addCompressedTensors(JsonNode quantization, List<QuantizationClaim> claims) {
    expect(CONFIG, quantization, "quant_method", "compressed-tensors");
    JsonNode groups = quantization.path("config_groups");
    if (groups.size() != 1) {
      differences.add(CONFIG + " has " + groups.size() + " config_groups; the tensors are of one");
      return;
    }

    JsonNode group = groups.elements().next();
    expect(CONFIG, group.path("format").isTextual() ? group : quantization, "format", "nvfp4-pack-quantized");
    for (Map.Entry<String, String> entry : Map.of(
        "num_bits", "4", "type", "float", "symmetric", "true", "strategy", "tensor_group", "group_size", "16")
        .entrySet()) {
      expect(CONFIG, group.path("weights"), entry.getKey(), entry.getValue());
    }

    if (group.path("targets").size() != 1 || !group.path("targets").path(0).asText().equals("Linear")) {
      differences.add(CONFIG + " has the targets " + group.path("targets") + "; only [\"Linear\"] can be verified");
    }

    expectPresent(CONFIG, quantization, "ignore");
    List<ModulePattern> patterns = new ArrayList<>();
    for (JsonNode entry : quantization.path("ignore")) {
      try {
        patterns.add(ModulePattern.nameOrRegex(entry.asText()));
      } catch (PatternSyntaxException e) {
        differences.add(CONFIG + " ignores \"" + entry.asText() + "\", which is no regular expression: "
            + e.getDescription());
      }
    }

    claims.add(new QuantizationClaim(CONFIG, !group.path("input_activations").isObject(), patterns));
  }

  private void expect(String file, JsonNode object, String key, String value) {
    if (!object.path(key).asText().equals(value)) {
      differences.add(file + " has " + key + " " + (object.has(key) ? object.get(key) : "missing") + ", must be "
          + value);
    }
  }

  private void expectPresent(String file, JsonNode object, String key) {
    if (!object.has(key)) {
      differences.add(file + " has no " + key + ", without which loaders refuse the checkpoint");
    }
  }
}
