package org.sparkfp4.verify;

import java.io.Serializable;

/**
 * A layer as its bytes show it.
 *
 * @param module the layer's name
 * @param globalScale its global scale as stored
 * @param inputScale the global scale of its activations as stored; NaN where there is none
 * @param source how the source stores it, as {@link org.sparkfp4.formats.SourceScheme#parse} takes it
 * @param amax largest magnitude of its own source weight
 * @param accuracy how well it stands for its source
 * @param sampled whether it was quantized again and compared
 */
public record LayerCheck(
    String module,
    float globalScale,
    float inputScale,
    String source,
    float amax,
    Accuracy accuracy,
    boolean sampled)
    implements Serializable {
  double relativeError() {
    return accuracy.relativeError();
  }
}
