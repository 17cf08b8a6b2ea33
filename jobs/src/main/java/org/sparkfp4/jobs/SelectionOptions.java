package org.sparkfp4.jobs;

import java.util.ArrayList;
import java.util.List;
import org.sparkfp4.plan.Selection;
import picocli.CommandLine.Option;

/** The options that choose layers by name. */
final class SelectionOptions {
  @Option(names = "--include", paramLabel = "GLOB",
      description = "Of the targets, quantize only modules whose whole name matches, such as "
          + "'model.layers.1?.mlp.experts.*'; * matches dots too. May be given several times.")
  private List<String> include = new ArrayList<>();

  @Option(names = "--exclude", paramLabel = "GLOB",
      description = "Leave modules whose whole name matches as they are. May be given several times.")
  private List<String> exclude = new ArrayList<>();

  @Option(names = "--strict",
      description = "A chosen layer whose K is no multiple of 16 is an error; else it stays as it is and is listed.")
  private boolean strict;

  @Option(names = "--allow-partial-fusion",
      description = "Let patterns choose a part of what runtimes fuse: gate without up, or some experts of a layer.")
  private boolean allowPartialFusion;

  Selection selection() {
    return new Selection(include, exclude, strict, allowPartialFusion);
  }
}
