package org.sparkfp4.report;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * How relative errors are distributed, by kind of layer.
 *
 * @param from where the first bin begins
 * @param width of a bin
 * @param kinds number of layers in each bin
 */
record Histogram(double from, double width, Map<String, long[]> kinds) {
  private static final int BINS = 40;

  /** Kinds that are told apart; a page has as many colours. */
  private static final int KINDS = 7;

  static Histogram of(List<LayerRow> rows) {
    List<LayerRow> finite = rows.stream().filter(row -> Double.isFinite(row.relativeError())).toList();
    double least = finite.stream().mapToDouble(LayerRow::relativeError).min().orElse(0);
    double most = finite.stream().mapToDouble(LayerRow::relativeError).max().orElse(0);
    double width = Math.max(most - least, 1e-6) / BINS;
    Map<String, Long> sizes = finite.stream().collect(Collectors.groupingBy(LayerRow::kind, Collectors.counting()));
    List<String> named = new ArrayList<>(sizes.keySet());
    named.sort((one, other) -> sizes.get(one).equals(sizes.get(other))
        ? one.compareTo(other)
        : Long.compare(sizes.get(other), sizes.get(one)));
    List<String> shown = named.subList(0, Math.min(KINDS, named.size()));
    Map<String, long[]> kinds = new LinkedHashMap<>();
    shown.forEach(kind -> kinds.put(kind, new long[BINS]));
    for (LayerRow row : finite) {
      String kind = shown.contains(row.kind()) ? row.kind() : "others";
      int bin = (int) Math.min(BINS - 1, (row.relativeError() - least) / width);
      kinds.computeIfAbsent(kind, key -> new long[BINS])[bin]++;
    }

    return new Histogram(least, width, kinds);
  }
}
