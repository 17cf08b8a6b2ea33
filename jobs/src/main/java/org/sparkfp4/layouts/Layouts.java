package org.sparkfp4.layouts;

import java.util.List;
import java.util.stream.Collectors;

/** The layouts that checkpoints are written in. */
public final class Layouts {
  private static final List<Layout> ALL = List.of(new ModelOptLayout(), new CompressedTensorsLayout());

  private Layouts() {}

  /**
   * The layout of that name.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  public static Layout named(String name) {
    for (Layout layout : ALL) {
      if (layout.name().equals(name)) {
        return layout;
      }
    }

    throw new IllegalArgumentException("Invalid layout: " + name + "; known are "
        + ALL.stream().map(Layout::name).collect(Collectors.joining(", ")));
  }
}
