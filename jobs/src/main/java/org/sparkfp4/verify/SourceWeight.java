package org.sparkfp4.verify;

import java.io.Serializable;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.SourceScheme;

/**
 * A weight of the source, however it is stored.
 *
 * @param weight its elements or codes; the shape is the logical one
 * @param scale its scales, or null
 * @param scheme as {@link SourceScheme#parse} takes it
 */
record SourceWeight(LocatedTensor weight, LocatedTensor scale, String scheme) implements Serializable {
  static SourceWeight of(SourceTensors tensors, LocatedTensor weight) {
    StoredWeight stored = tensors.stored(weight);
    return new SourceWeight(weight, stored == null ? null : stored.scale(), tensors.scheme(weight));
  }

  SourceScheme parsed() {
    return SourceScheme.parse(scheme);
  }

  String name() {
    return weight.name();
  }

  /** The global scale of layers whose largest weight, or exponent of MXFP4, is that of {@code amax}. */
  float globalScale(Nvfp4Recipe recipe, ScaleSearch search, float amax) {
    SourceScheme parsed = parsed();
    return parsed.isMxfp4()
        ? Mxfp4.globalScale(recipe, Mxfp4.exponent(amax))
        : search.globalScale(recipe, amax, parsed.elements());
  }
}
