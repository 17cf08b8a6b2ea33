package org.sparkfp4.report;

import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * The layers of one role and projection.
 *
 * @param role their role
 * @param projection the last part of their names
 * @param layers how many they are
 * @param parameters their weights
 * @param relativeError of all of them together
 * @param median of their relative errors
 * @param worst the largest of them
 * @param worstModule the layer that has it
 * @param outliers how many are far from the others
 */
record Kind(
    String role,
    String projection,
    long layers,
    long parameters,
    double relativeError,
    double median,
    double worst,
    String worstModule,
    long outliers) {
  static List<Kind> of(List<LayerRow> rows) {
    Map<String, List<LayerRow>> kinds =
        rows.stream().collect(Collectors.groupingBy(LayerRow::kind, LinkedHashMap::new, Collectors.toList()));
    return kinds.values().stream().map(Kind::one).toList();
  }

  private static Kind one(List<LayerRow> rows) {
    LayerRow worst = rows.stream().max(Comparator.comparingDouble(LayerRow::relativeError)).orElseThrow();
    return new Kind(
        worst.role(),
        worst.projection(),
        rows.size(),
        rows.stream().mapToLong(row -> row.rows() * row.cols()).sum(),
        relativeError(rows),
        Outliers.median(rows.stream().mapToDouble(LayerRow::relativeError).toArray()),
        worst.relativeError(),
        worst.module(),
        rows.stream().filter(LayerRow::outlier).count());
  }

  /** Relative error of layers together; 0 where all are zeros that stayed so. */
  static double relativeError(List<LayerRow> rows) {
    double errors = rows.stream().mapToDouble(LayerRow::squaredError).sum();
    return errors == 0 ? 0 : Math.sqrt(errors / rows.stream().mapToDouble(LayerRow::sumSquares).sum());
  }
}
