package org.sparkfp4.plan;

import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * A linear layer of a unit.
 *
 * @param module the layer's module name: the weight's name without {@code .weight}
 * @param weight its weight in the source; the shape is the logical {@code [rows, K]}, that of packed codes differs
 * @param scale the scales that its codes are multiplied by; null for plain floating point
 */
public record Member(String module, LocatedTensor weight, LocatedTensor scale) {
  /** Its tensors in the source. */
  List<LocatedTensor> sources() {
    return scale == null ? List.of(weight) : List.of(weight, scale);
  }

  /** Bytes that it has in the source. */
  long sourceBytes() {
    return weight.length() + (scale == null ? 0 : scale.length());
  }
}
