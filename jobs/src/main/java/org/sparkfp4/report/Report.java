package org.sparkfp4.report;

import com.fasterxml.jackson.annotation.JsonInclude;
import java.util.List;
import java.util.Map;

/**
 * What {@code report.json} has.
 *
 * @param producer product and version
 * @param command what was run
 * @param begun when, in ISO 8601, UTC
 * @param source folder of the source
 * @param output folder of the quantized checkpoint
 * @param options what was asked for
 * @param summary figures of the whole
 * @param kinds the layers by role and projection
 * @param outliers layers far from others of their kind, the worst first; the table has all
 * @param differences what a verification found, as many as it keeps words of
 * @param warnings what may be worse than it looks, in words
 * @param codes number of codes of each magnitude, 0 to 6; null where codes were not counted
 * @param scales number of block scales of each E4M3 code, likewise
 * @param events what was not the rule, by name
 * @param deadExperts experts that saw no token, where there are statistics
 * @param stages the parts of the run
 */
@JsonInclude(JsonInclude.Include.NON_NULL)
record Report(
    String producer,
    String command,
    String begun,
    String source,
    String output,
    Map<String, String> options,
    Summary summary,
    List<Kind> kinds,
    List<LayerRow> outliers,
    List<String> differences,
    List<String> warnings,
    long[] codes,
    long[] scales,
    Map<String, Long> events,
    List<String> deadExperts,
    List<Stage> stages) {
  /** Outliers that are listed. */
  static final int OUTLIERS = 100;

  /**
   * Figures of the whole.
   *
   * @param layers quantized layers
   * @param parameters their weights
   * @param allParameters weights of the model; null where that was not looked at
   * @param bytesIn bytes of the source; null likewise
   * @param bytesOut bytes of the quantized checkpoint
   * @param relativeError of all quantized layers together
   * @param sqnr in decibels; null where nothing was lost
   * @param outliers layers far from others of their kind
   * @param differences what a verification found; null where there was none
   * @param compared tensors that a verification held against the source byte for byte; null likewise
   * @param sampled layers that it quantized again; null likewise
   */
  @JsonInclude(JsonInclude.Include.NON_NULL)
  record Summary(
      long layers,
      long parameters,
      Long allParameters,
      Long bytesIn,
      long bytesOut,
      double relativeError,
      Double sqnr,
      long outliers,
      Long differences,
      Long compared,
      Long sampled) {}
}
