package org.sparkfp4.layouts;

/**
 * Modules of one precision, for a list of a configuration file: one, or all that lie below a path.
 *
 * @param path module path
 * @param extent how far it reaches
 */
record ModulePath(String path, Extent extent) {
  enum Extent {
    /** The module of that name only. */
    MODULE,
    /** All below the path. The name of no module of another precision begins as the path does. */
    PREFIX,
    /** All below the path. Other names begin as the path does, {@code layers.61} and {@code layers.610}. */
    BELOW
  }

  /** As a shell pattern, which ModelOpt's loaders take: a name, {@code path*} or {@code path.*}. */
  String glob() {
    return switch (extent) {
      case MODULE -> path;
      case PREFIX -> path + "*";
      case BELOW -> path + ".*";
    };
  }

  /** As compressed-tensors has it: a name, or a regular expression, matched from the name's start. */
  String nameOrRegex() {
    return extent == Extent.MODULE ? path : "re:^" + path.replace(".", "\\.") + "\\..*";
  }
}
