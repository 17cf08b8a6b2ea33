package org.sparkfp4.report;

import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelFamily;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.output.LayerError;
import org.sparkfp4.verify.Accuracy;
import org.sparkfp4.verify.LayerCheck;

/**
 * A quantized layer in the table of a report. What a run did not look at is null: {@code quantize} knows sums of
 * errors, {@code verify} has decoded every code.
 *
 * @param module the layer's name
 * @param role what it is for
 * @param layer the layer of the model that it is part of
 * @param expert the expert that it is part of
 * @param projection the last part of its name
 * @param rows its rows; of stacked experts, those of all of them
 * @param cols K
 * @param source how the source stores it
 * @param amax largest magnitude: of all that share its global scale in {@code quantize}, its own in {@code verify}
 * @param globalScale as stored
 * @param sumSquares sum of squared weights
 * @param squaredError sum of squared errors
 * @param relativeError in the Frobenius norm
 * @param sqnr signal to quantization noise in decibels; null where nothing was lost
 * @param cosine between source and decoded weights
 * @param zeroCodes share of codes that are zero
 * @param saturatedCodes share of codes that a larger weight was clipped to
 * @param subnormalScales share of block scales below 2^-6
 * @param largestBlockError RMS error of the worst block over the layer's RMS weight
 * @param blockRow row of that block
 * @param blockCol its first column
 * @param requantizedBlocks blocks of an MXFP4 source that no exact cast could hold
 * @param sampled whether it was quantized again and compared
 * @param outlier whether its error is far from that of others of its kind
 */
public record LayerRow(
    String module,
    String role,
    Integer layer,
    Integer expert,
    String projection,
    long rows,
    long cols,
    String source,
    float amax,
    Float globalScale,
    double sumSquares,
    double squaredError,
    double relativeError,
    Double sqnr,
    Double cosine,
    Double zeroCodes,
    Double saturatedCodes,
    double subnormalScales,
    Double largestBlockError,
    Long blockRow,
    Long blockCol,
    Long requantizedBlocks,
    Boolean sampled,
    boolean outlier) {

  /**
   * A layer as {@code quantize} wrote it.
   *
   * @param weight its weight in the source, the logical shape
   * @param scheme how the source stores it
   */
  static LayerRow of(LayerError error, LocatedTensor weight, String scheme, ModelFamily family) {
    ModulePlace place = ModulePlace.of(error.module());
    double relative = error.relativeError();
    double blocks = (double) weight.rows() * weight.cols() / Nvfp4.BLOCK;
    return new LayerRow(
        error.module(), role(family, error.module()), place.layer(), place.expert(), place.projection(), weight.rows(),
        weight.cols(), scheme, error.amax(), null, error.sumSquares(), error.squaredError(), relative, sqnr(relative),
        null, null, null, error.subnormalScales() / blocks, null, null, null, error.requantized(), null, false);
  }

  /** A layer as {@code verify} read it; {@code family} may be null. */
  static LayerRow of(LayerCheck check, ModelFamily family) {
    ModulePlace place = ModulePlace.of(check.module());
    Accuracy accuracy = check.accuracy();
    return new LayerRow(
        check.module(), role(family, check.module()), place.layer(), place.expert(), place.projection(),
        accuracy.rows(), accuracy.cols(), check.source(), check.amax(), check.globalScale(), accuracy.sumSquares(),
        accuracy.squaredError(), accuracy.relativeError(), sqnr(accuracy.relativeError()), accuracy.cosine(),
        accuracy.zeroShare(), accuracy.saturatedShare(), accuracy.subnormalShare(), accuracy.largestBlockError(),
        accuracy.blockRow(), accuracy.blockCol(), null, check.sampled(), false);
  }

  private static String role(ModelFamily family, String module) {
    return family == null ? "quantized layers" : family.role(module + ".weight").description();
  }

  private static Double sqnr(double relativeError) {
    return relativeError > 0 ? Double.valueOf(-20 * Math.log10(relativeError)) : null;
  }

  /** Layers that are compared with one another: those of one role and projection. */
  String kind() {
    return role + ", " + projection;
  }

  /** The same layer, as an outlier. */
  LayerRow asOutlier() {
    return new LayerRow(
        module, role, layer, expert, projection, rows, cols, source, amax, globalScale, sumSquares, squaredError,
        relativeError, sqnr, cosine, zeroCodes, saturatedCodes, subnormalScales, largestBlockError, blockRow, blockCol,
        requantizedBlocks, sampled, true);
  }
}
