package org.sparkfp4.output;

import java.io.Serializable;

/**
 * How far a quantized layer is from its source.
 *
 * @param module name of the layer
 * @param amax largest magnitude among the weights of its unit
 * @param sumSquares sum of the squares of its weights
 * @param squaredError sum of the squares of what quantization changed
 * @param requantized blocks of an MXFP4 source that no exact cast could hold; 0 of any other source
 * @param gptqRows rows whose codes are GPTQ's; 0 in records of versions that did not count them
 * @param subnormalScales block scales below 2^-6, likewise
 * @param largestScales block scales of 448, likewise
 */
public record LayerError(
    String module,
    float amax,
    double sumSquares,
    double squaredError,
    long requantized,
    long gptqRows,
    long subnormalScales,
    long largestScales)
    implements Serializable {
  /** Relative error in the Frobenius norm; 0 for a layer of zeros. */
  public double relativeError() {
    return sumSquares == 0 ? 0 : Math.sqrt(squaredError / sumSquares);
  }
}
