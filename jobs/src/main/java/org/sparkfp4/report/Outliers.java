package org.sparkfp4.report;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * Finds layers whose error is far above that of others of their kind: above median + 6 · 1.4826 · MAD, MAD being the
 * median distance from the median, which a few outliers do not move. 1.4826 · MAD is the standard deviation of a
 * normal distribution. Where nearly all errors are the same, one in twenty above the median is still nothing.
 */
final class Outliers {
  private static final double DEVIATIONS = 6;
  private static final double SIGMA_OF_MAD = 1.4826;
  private static final double LEAST = 0.05;

  /** Layers of a kind below which its spread is not known. */
  private static final int KNOWN = 8;

  private Outliers() {}

  /** The rows with the outliers marked, in the same order. A layer whose error is no number is one. */
  static List<LayerRow> mark(List<LayerRow> rows) {
    Map<String, Double> limits = new LinkedHashMap<>();
    rows.stream()
        .collect(Collectors.groupingBy(LayerRow::kind))
        .forEach((kind, of) -> limits.put(kind, limit(of.stream().mapToDouble(LayerRow::relativeError).toArray())));
    List<LayerRow> marked = new ArrayList<>(rows.size());
    for (LayerRow row : rows) {
      marked.add(row.relativeError() <= limits.get(row.kind()) ? row : row.asOutlier());
    }

    return marked;
  }

  /** The outliers, the one with the largest error first. */
  static List<LayerRow> of(List<LayerRow> marked) {
    return marked.stream()
        .filter(LayerRow::outlier)
        .sorted(Comparator.comparingDouble(LayerRow::relativeError).reversed().thenComparing(LayerRow::module))
        .toList();
  }

  private static double limit(double[] errors) {
    if (errors.length < KNOWN) {
      return Double.MAX_VALUE;
    }

    double median = median(errors);
    double spread = median(Arrays.stream(errors).map(error -> Math.abs(error - median)).toArray());
    return median + Math.max(DEVIATIONS * SIGMA_OF_MAD * spread, LEAST * median);
  }

  /** The median; numbers that are none count as the largest. */
  static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    int half = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
}
