package org.sparkfp4.verify;

import java.util.List;

/**
 * What a configuration file says of a checkpoint's layers.
 *
 * @param file name of the file
 * @param weightOnly whether activations stay in high precision
 * @param excluded the modules that are not quantized
 */
record QuantizationClaim(String file, boolean weightOnly, List<ModulePattern> excluded) {
  QuantizationClaim {
    excluded = List.copyOf(excluded);
  }

  List<String> excludedText() {
    return excluded.stream().map(ModulePattern::text).sorted().toList();
  }
}
