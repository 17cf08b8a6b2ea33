package org.sparkfp4.verify;

import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * Whether configuration files and tensors say the same, in both directions: a quantized layer that is excluded loses
 * its scales, a layer in high precision that is not excluded is taken for codes, one that is stored in the source's
 * precision must be said to be.
 */
final class ConfigCheck {
  private final List<QuantizationClaim> claims;
  private final Differences differences;

  ConfigCheck(List<QuantizationClaim> claims, Differences differences) {
    this.claims = claims;
    this.differences = differences;
  }

  void check(
      Collection<QuantizedLayer> layers, Collection<LocatedTensor> unquantized, Map<String, StoredForm> stored) {
    for (QuantizationClaim claim : claims) {
      layers.forEach(layer -> checkQuantized(claim, layer));
      unquantized.stream().filter(ConfigCheck::isLinear).forEach(kept -> checkKept(claim, kept));
      stored.forEach((module, form) -> checkStored(claim, module, form));
    }

    for (QuantizationClaim claim : claims.subList(Math.min(1, claims.size()), claims.size())) {
      checkSame(claims.get(0), claim);
    }
  }

  private void checkQuantized(QuantizationClaim claim, QuantizedLayer layer) {
    Optional<ModulePattern> excluding =
        claim.excluded().stream().filter(pattern -> pattern.mayExclude(layer.module())).findFirst();
    excluding.ifPresent(pattern -> differences.add("Layer " + layer.module() + " is quantized, but " + claim.file()
        + " excludes it by \"" + pattern.text() + "\""));
    if (!claim.listed().isEmpty() && claim.listed().stream().noneMatch(each -> each.excludes(layer.module()))) {
      differences.add("Layer " + layer.module() + " is quantized, but " + claim.file()
          + " does not name it among its layers");
    }

    claim.stored().stream().filter(each -> each.includes(layer.module())).findFirst().ifPresent(each ->
        differences.add("Layer " + layer.module() + " is NVFP4, but by " + claim.file() + " it is " + each.form()));
    if (claim.weightOnly() != (layer.inputScale() == null)) {
      String name = layer.scheme().inputScale(layer.module(), layer.isStacked());
      differences.add(claim.weightOnly()
          ? "Unexpected tensor " + name + ": by " + claim.file() + " activations stay in high precision"
          : "Missing tensor " + name + ": by " + claim.file() + " activations are quantized");
    }
  }

  private void checkKept(QuantizationClaim claim, LocatedTensor kept) {
    String module = kept.name().substring(0, kept.name().lastIndexOf('.'));
    if (claim.excluded().stream().noneMatch(pattern -> pattern.excludes(module))) {
      differences.add("Layer " + module + " is in high precision (" + kept.dtype() + "), but " + claim.file()
          + " does not exclude it");
    }
  }

  private void checkStored(QuantizationClaim claim, String module, StoredForm form) {
    boolean excluded = claim.asInSource()
        ? claim.excluded().stream().anyMatch(pattern -> pattern.excludes(module))
        : claim.excluded().stream().anyMatch(pattern -> pattern.mayExclude(module));
    if (claim.asInSource() != excluded) {
      differences.add("Layer " + module + " is stored as in the source, " + form + ", but " + claim.file()
          + (excluded ? " excludes it, as if it were in high precision" : " does not exclude it from NVFP4"));
    }

    List<StoredForm> claimed =
        claim.stored().stream().filter(each -> each.includes(module)).map(StoredClaim::form).toList();
    if (!claim.asInSource() && !claimed.equals(List.of(form))) {
      differences.add("Layer " + module + " is stored as in the source, " + form + ", but by " + claim.file()
          + " it is " + (claimed.isEmpty() ? "not" : claimed.toString()));
    }
  }

  /** A weight that runtimes make a linear layer of; embeddings they look up in. */
  private static boolean isLinear(LocatedTensor tensor) {
    return tensor.name().endsWith(".weight") && tensor.shape().size() == 2 && !tensor.name().contains("embed");
  }

  private void checkSame(QuantizationClaim one, QuantizationClaim other) {
    if (!one.content().equals(other.content())) {
      differences.add(one.file() + " and " + other.file() + " differ in the quantization of activations or in the "
          + "modules that they exclude or name");
    }
  }
}
