package org.sparkfp4.layouts;

import java.util.ArrayList;
import java.util.List;

/** The YAML block at the head of a model card. */
final class FrontMatter {
  private static final String FENCE = "---";
  private static final List<String> LICENSE = List.of("license:", "license_name:", "license_link:");

  private FrontMatter() {}

  /** The lines of a card's front matter that state its license, as they are; none when it states none. */
  static List<String> license(String card) {
    List<String> lines = new ArrayList<>();
    List<String> all = card.lines().toList();
    if (all.isEmpty() || !all.get(0).strip().equals(FENCE)) {
      return lines;
    }

    for (String line : all.subList(1, all.size())) {
      if (line.strip().equals(FENCE)) {
        return lines;
      }

      if (LICENSE.stream().anyMatch(line::startsWith)) {
        lines.add(line.stripTrailing());
      }
    }

    return List.of();
  }
}
