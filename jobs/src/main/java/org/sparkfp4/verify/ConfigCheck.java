package org.sparkfp4.verify;

import java.util.Collection;
import java.util.List;
import java.util.Optional;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * Whether configuration files and tensors say the same, in both directions: a quantized layer that is excluded loses
 * its scales, a layer in high precision that is not excluded is taken for codes.
 */
final class ConfigCheck {
  private final List<QuantizationClaim> claims;
  private final Differences differences;

  ConfigCheck(List<QuantizationClaim> claims, Differences differences) {
    this.claims = claims;
    this.differences = differences;
  }

  void check(Collection<QuantizedLayer> layers, Collection<LocatedTensor> unquantized) {
    for (QuantizationClaim claim : claims) {
      layers.forEach(layer -> checkQuantized(claim, layer));
      unquantized.stream().filter(ConfigCheck::isLinear).forEach(kept -> checkKept(claim, kept));
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

  /** A weight that runtimes make a linear layer of; embeddings they look up in. */
  private static boolean isLinear(LocatedTensor tensor) {
    return tensor.name().endsWith(".weight") && tensor.shape().size() == 2 && !tensor.name().contains("embed");
  }

  private void checkSame(QuantizationClaim one, QuantizationClaim other) {
    if (one.weightOnly() != other.weightOnly() || !one.excludedText().equals(other.excludedText())) {
      differences.add(one.file() + " and " + other.file() + " differ in the quantization of activations or in the "
          + "modules that they exclude");
    }
  }
}
