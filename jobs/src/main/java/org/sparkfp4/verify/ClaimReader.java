package org.sparkfp4.verify;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.formats.CodeType;

/** Reads what ModelOpt's configuration files say of quantization; what they say wrongly is a difference. */
final class ClaimReader {
  private static final String MIXED = "MIXED_PRECISION";
  private static final Map<String, Boolean> WEIGHT_ONLY = Map.of("NVFP4", false, "W4A16_NVFP4", true);
  private static final Map<String, StoredForm> STORED = Map.of(
      "FP8", new StoredForm(CodeType.E4M3, 0, 0, true), "MXFP8", new StoredForm(CodeType.E4M3, 1, 32, false));

  private final Differences differences;

  ClaimReader(Differences differences) {
    this.differences = differences;
  }

  /** Whether a config.json is the source's own of FP8 weights, with NVFP4 experts. */
  static boolean isHybrid(JsonNode config) {
    JsonNode quantization = config.path("quantization_config");
    return quantization.path("quant_method").asText().equals("fp8") && quantization.has("moe_quant_algo");
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
      new GroupClaimReader(differences).add(flat, claims);
      return claims;
    }

    boolean hybrid = isHybrid(config);
    if (hybrid) {
      keys(Checkpoint.CONFIG).expect(flat, "moe_quant_algo", "NVFP4");
      addModelOpt(Checkpoint.CONFIG, flat, "ignore", true, claims);
    } else if (flat.isObject() || hfQuantConfig.isMissingNode()) {
      addFlat(Checkpoint.CONFIG, flat, claims);
    }

    if (hfQuantConfig.has("quant_method")) {
      addFlat(Checkpoint.QUANT_CONFIG, hfQuantConfig, claims);
    } else if (!hfQuantConfig.isMissingNode()) {
      addNested(hfQuantConfig.path("quantization"), hybrid, claims);
    }

    return claims;
  }

  private void addFlat(String file, JsonNode quantization, List<QuantizationClaim> claims) {
    keys(file).expect(quantization, "quant_method", "modelopt");
    addModelOpt(file, quantization, "ignore", false, claims);
  }

  private void addNested(JsonNode quantization, boolean hybrid, List<QuantizationClaim> claims) {
    keys(Checkpoint.QUANT_CONFIG).expect(quantization, "group_size", "16");
    keys(Checkpoint.QUANT_CONFIG).expectPresent(quantization, "kv_cache_quant_algo");
    if (quantization.path("quant_algo").asText().equals("W4A16_NVFP4")) {
      differences.add(Checkpoint.QUANT_CONFIG + " has quant_algo \"W4A16_NVFP4\" in the nested form, which vLLM refuses");
    }

    addModelOpt(Checkpoint.QUANT_CONFIG, quantization, "exclude_modules", hybrid, claims);
  }

  private void addModelOpt(
      String file, JsonNode quantization, String excluded, boolean hybrid, List<QuantizationClaim> claims) {
    String algorithm = quantization.path("quant_algo").asText();
    if (!algorithm.equals(MIXED) && !WEIGHT_ONLY.containsKey(algorithm)) {
      differences.add(file + " has quant_algo \"" + algorithm + "\"; the tensors are of NVFP4 or W4A16_NVFP4");
      return;
    }

    keys(file).expectPresent(quantization, excluded);
    List<ModulePattern> patterns = new ArrayList<>();
    keys(file).names(quantization, excluded).forEach(entry -> patterns.add(ModulePattern.glob(entry)));
    for (JsonNode group : keys(file).objects(quantization, "config_groups").values()) {
      keys(file).expect(group.path("weights"), "num_bits", "4");
      keys(file).expect(group.path("weights"), "group_size", "16");
    }

    if (algorithm.equals(MIXED)) {
      addMixed(file, keys(file).objects(quantization, "quantized_layers"), patterns, hybrid, claims);
    } else {
      claims.add(
          new QuantizationClaim(file, WEIGHT_ONLY.get(algorithm), patterns, List.of(), List.of(), false));
    }
  }

  private void addMixed(
      String file,
      Map<String, JsonNode> layers,
      List<ModulePattern> excluded,
      boolean hybrid,
      List<QuantizationClaim> claims) {
    Map<String, List<ModulePattern>> byAlgorithm = new LinkedHashMap<>();
    layers.forEach((module, layer) -> byAlgorithm
        .computeIfAbsent(layer.path("quant_algo").asText(), algorithm -> new ArrayList<>())
        .add(ModulePattern.below(module)));
    List<StoredClaim> stored = new ArrayList<>();
    List<ModulePattern> listed = new ArrayList<>();
    byAlgorithm.forEach((algorithm, modules) -> {
      if (WEIGHT_ONLY.containsKey(algorithm)) {
        listed.addAll(modules);
      } else if (STORED.containsKey(algorithm)) {
        stored.add(new StoredClaim(STORED.get(algorithm), modules));
      } else {
        differences.add(file + " has layers of quant_algo \"" + algorithm + "\", such as " + modules.get(0).text()
            + "; runtimes read NVFP4, W4A16_NVFP4, FP8 and MXFP8 there");
      }
    });
    if (listed.isEmpty()) {
      differences.add(file + " has quant_algo \"" + MIXED + "\", but no NVFP4 layer in quantized_layers");
      return;
    }

    boolean weightOnly = byAlgorithm.containsKey("W4A16_NVFP4");
    if (weightOnly && byAlgorithm.containsKey("NVFP4")) {
      differences.add(file + " has layers of NVFP4 and of W4A16_NVFP4; only one of them can be verified");
    }

    claims.add(new QuantizationClaim(file, weightOnly, excluded, listed, stored, hybrid));
  }

  private RequiredKeys keys(String file) {
    return new RequiredKeys(file, differences);
  }
}
