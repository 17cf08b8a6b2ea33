package org.sparkfp4.verify;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * A layer of the quantized checkpoint beside its source, dtypes and shapes being right.
 *
 * @param module the layer's name
 * @param scheme how its tensors are named
 * @param source its weight in the source, [rows, K]
 * @param packed its codes, U8 [rows, K / 2]
 * @param scales its block scales, F8_E4M3 [rows, K / 16]
 * @param globalScale its global scale, F32
 * @param inputScale the global scale of its activations, F32, or null
 * @param sharers sources of the layers that runtimes fuse, itself among them: one amax scales all of them
 * @param sampled whether it is quantized again and compared
 */
record QuantizedLayer(
    String module,
    Scheme scheme,
    SourceWeight source,
    LocatedTensor packed,
    LocatedTensor scales,
    LocatedTensor globalScale,
    LocatedTensor inputScale,
    List<SourceWeight> sharers,
    boolean sampled)
    implements Serializable {
  QuantizedLayer {
    sharers = List.copyOf(sharers);
  }

  /** Whether it is the matrices of all experts of a layer. */
  boolean isStacked() {
    return source.weight().shape().size() == 3;
  }
}
