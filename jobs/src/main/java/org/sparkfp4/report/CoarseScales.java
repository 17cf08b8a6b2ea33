package org.sparkfp4.report;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * Layers of which a part is so small under the global scale that its block scales are subnormal: below 2^-6 an E4M3 scale
 * has fewer bits the smaller it is, and none at all in the end, where weights become zeros. The relative error of the
 * layer does not tell, since that part weighs little in it.
 */
final class CoarseScales {
  /** The least share of block scales that is worth a word; an expert of a stack of 384 has twice as many. */
  private static final double SHARE = 0.001;

  /** Layers that are named. */
  private static final int NAMED = 5;

  private CoarseScales() {}

  /** What to say of them, the layer with the largest share first; empty if there is none. */
  static List<String> warnings(List<LayerRow> rows) {
    List<LayerRow> coarse = rows.stream()
        .filter(row -> row.subnormalScales() >= SHARE)
        .sorted(Comparator.comparingDouble(LayerRow::subnormalScales).reversed().thenComparing(LayerRow::module))
        .toList();
    List<String> warnings = new ArrayList<>();
    for (LayerRow row : coarse.subList(0, Math.min(NAMED, coarse.size()))) {
      warnings.add(String.format(Locale.ROOT, "%.1f %% of the block scales of %s are subnormal (below 2^-6): that part "
          + "of its weights is small beside the largest under its global scale and loses precision; --exclude keeps the "
          + "layer as it is", 100 * row.subnormalScales(), row.module()));
    }

    if (coarse.size() > NAMED) {
      warnings.add(String.format(Locale.ROOT, "%,d more layers have subnormal block scales; the table of the report has "
          + "them", coarse.size() - NAMED));
    }

    return warnings;
  }
}
