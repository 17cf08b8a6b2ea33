package org.sparkfp4.verify;

import java.io.Serializable;

/**
 * How well a layer's codes and scales stand for its source. Sums are over all weights, in binary64.
 *
 * @param rows rows of the layer; of stacked experts, those of all of them
 * @param cols K
 * @param sumSquares sum of w², w being the source's weight
 * @param squaredError sum of (w - v)², v being the decoded weight
 * @param decodedSquares sum of v²
 * @param product sum of w·v
 * @param zeroCodes codes that stand for 0 or -0
 * @param saturatedCodes codes that stand for ±6 where the weight is beyond 6 of its block's scale
 * @param subnormalScales block scales below 2^-6, which have fewer than three bits after the leading one
 * @param blockError largest sum of (w - v)² of a block of 16
 * @param blockRow row of that block
 * @param blockCol first column of that block
 */
public record Accuracy(
    long rows,
    long cols,
    double sumSquares,
    double squaredError,
    double decodedSquares,
    double product,
    long zeroCodes,
    long saturatedCodes,
    long subnormalScales,
    double blockError,
    long blockRow,
    long blockCol)
    implements Serializable {
  private static final int BLOCK = 16;

  /** Weights of the layer. */
  public long elements() {
    return rows * cols;
  }

  /** Relative error in the Frobenius norm; 0 for a layer of zeros that stayed one. */
  public double relativeError() {
    return squaredError == 0 ? 0 : Math.sqrt(squaredError / sumSquares);
  }

  /** Signal to quantization noise in decibels; infinite where nothing was lost. */
  public double sqnr() {
    return -20 * Math.log10(relativeError());
  }

  /** Cosine between source and decoded weights; 1 for a layer of zeros that stayed one. */
  public double cosine() {
    return squaredError == 0 ? 1 : product / Math.sqrt(sumSquares * decodedSquares);
  }

  /** Share of the codes that stand for zero. */
  public double zeroShare() {
    return (double) zeroCodes / elements();
  }

  /** Share of the codes that a weight beyond them was clipped to. */
  public double saturatedShare() {
    return (double) saturatedCodes / elements();
  }

  /** Share of the block scales that are subnormal. */
  public double subnormalShare() {
    return (double) subnormalScales * BLOCK / elements();
  }

  /** Root mean square error of the worst block, in units of the layer's root mean square weight. */
  public double largestBlockError() {
    return blockError == 0 ? 0 : Math.sqrt(blockError / BLOCK / (sumSquares / elements()));
  }
}
