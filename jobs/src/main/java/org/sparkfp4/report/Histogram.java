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
 * @param open whether the last bin has errors too that are above it: a few of them must not hide how the others are
 * @param kinds number of layers in each bin
 */
record Histogram(double from, double width, boolean open, Map<String, long[]> kinds) {
  private static final int BINS = 40;

  /** Share of the layers that the bins span. */
  private static final double SHOWN = 0.995;

  /** Kinds that are told apart; a page has as many colours. */
  private static final int KINDS = 7;

  static Histogram of(List<LayerRow> rows) {
    List<LayerRow> finite = rows.stream().filter(row -> Double.isFinite(row.relativeError())).toList();
    double[] errors = finite.stream().mapToDouble(LayerRow::relativeError).sorted().toArray();
    double least = errors.length == 0 ? 0 : errors[0];
    double most = errors.length == 0 ? 0 : errors[(int) ((errors.length - 1) * SHOWN)];
    boolean open = errors.length > 0 && errors[errors.length - 1] > most;
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

    return new Histogram(least, width, open, kinds);
  }
}
