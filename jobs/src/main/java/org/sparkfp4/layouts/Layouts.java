package org.sparkfp4.layouts;

import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.sparkfp4.plan.Layout;

/** The layouts that checkpoints are written in. */
public final class Layouts {
  private static final List<Layout> ALL = Stream.concat(
          Stream.of(new ModelOptLayout(), new CompressedTensorsLayout()),
          Arrays.stream(ExpertLayout.values()).map(ArrangedLayout::new))
      .toList();

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
