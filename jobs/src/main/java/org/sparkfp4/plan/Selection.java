package org.sparkfp4.plan;

import java.util.List;

/**
 * Which layers of the targets are quantized, by their names, and what becomes of those that cannot be.
 *
 * @param include patterns of module names; a layer that none of them matches stays as it is; empty for all
 * @param exclude patterns of module names that stay as they are, whatever {@code include} says
 * @param strict whether a layer whose K is no multiple of 16 is an error and not left as it is
 * @param allowPartialFusion whether layers that runtimes fuse, or the experts of a layer, may be quantized in part
 */
public record Selection(List<String> include, List<String> exclude, boolean strict, boolean allowPartialFusion) {
  /** All layers of the targets that can be quantized. */
  public static final Selection ALL = new Selection(List.of(), List.of(), false, false);

  public Selection {
    include = List.copyOf(include);
    exclude = List.copyOf(exclude);
  }
}
