package org.sparkfp4.verify;

import java.io.Serializable;

/**
 * A layer as its bytes show it.
 *
 * @param module the layer's name
 * @param globalScale its global scale as stored
 * @param inputScale the global scale of its activations as stored; NaN where there is none
 * @param amax largest magnitude of its own source weight
 * @param sumSquares sum of the squares of the source's weights
 * @param squaredError sum of the squares of the differences between source and decoded weights
 * @param sampled whether it was quantized again and compared
 */
record LayerCheck(
    String module,
    float globalScale,
    float inputScale,
    float amax,
    double sumSquares,
    double squaredError,
    boolean sampled)
    implements Serializable {
  /** Relative error in the Frobenius norm; 0 for a layer of zeros that stayed one. */
  double relativeError() {
    return squaredError == 0 ? 0 : Math.sqrt(squaredError / sumSquares);
  }
}
