package org.sparkfp4.verify;

import java.util.List;

/**
 * What a configuration file says of a checkpoint's layers.
 *
 * @param file name of the file
 * @param weightOnly whether activations stay in high precision
 * @param excluded the modules that are not quantized
 * @param listed the NVFP4 modules where the file names them; empty where all others are
 * @param stored the modules that are stored in the source's precision
 * @param asInSource whether the excluded modules are stored as the source's own configuration says
 */
record QuantizationClaim(
    String file,
    boolean weightOnly,
    List<ModulePattern> excluded,
    List<ModulePattern> listed,
    List<StoredClaim> stored,
    boolean asInSource) {
  QuantizationClaim {
    excluded = List.copyOf(excluded);
    listed = List.copyOf(listed);
    stored = List.copyOf(stored);
  }

  /** What is comparable of the claims of two files. */
  List<Object> content() {
    return List.of(weightOnly, text(excluded), text(listed), stored.stream().map(StoredClaim::form).toList(),
        stored.stream().map(claim -> text(claim.modules())).toList());
  }

  private static List<String> text(List<ModulePattern> patterns) {
    return patterns.stream().map(ModulePattern::text).sorted().toList();
  }
}
