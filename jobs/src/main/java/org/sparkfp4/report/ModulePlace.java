package org.sparkfp4.report;

import java.util.Arrays;

/**
 * Where in a model a module is, as far as its name tells.
 *
 * @param layer the first number in the name, or null
 * @param expert the number of the expert that it is part of, or null
 * @param projection its last part
 */
record ModulePlace(Integer layer, Integer expert, String projection) {
  static ModulePlace of(String module) {
    String[] parts = module.split("\\.");
    Integer layer = null;
    Integer expert = null;
    for (int i = 0; i < parts.length; i++) {
      if (isIndex(parts[i]) && i > 0 && parts[i - 1].contains("expert")) {
        expert = Integer.valueOf(parts[i]);
      } else if (isIndex(parts[i]) && layer == null) {
        layer = Integer.valueOf(parts[i]);
      }
    }

    return new ModulePlace(layer, expert, parts[parts.length - 1]);
  }

  /** What a module's name has behind the number of its layer; all of it where there is none. */
  static String withinLayer(String module) {
    String[] parts = module.split("\\.");
    int at = 0;
    while (at < parts.length && !isIndex(parts[at])) {
      at++;
    }

    return at < parts.length - 1
        ? String.join(".", Arrays.asList(parts).subList(at + 1, parts.length))
        : module;
  }

  private static boolean isIndex(String part) {
    return part.matches("\\d{1,9}");
  }
}
