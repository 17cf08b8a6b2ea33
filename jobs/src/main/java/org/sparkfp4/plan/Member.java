package org.sparkfp4.plan;

import com.fasterxml.jackson.annotation.JsonIgnore;
import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * A linear layer of a unit.
 *
 * @param module the layer's module name: the weight's name without {@code .weight}
 * @param weight its weight in the source; the shape is the logical {@code [rows, K]}, or {@code [experts, rows,
 *     K]} of a stack; that of packed codes differs
 * @param scale the scales that its codes are multiplied by; null for plain floating point
 */
public record Member(String module, LocatedTensor weight, LocatedTensor scale) {
  /**
   * Whether it is the matrices of all experts of a layer, {@code [experts, rows, K]}, that stay one tensor. Runtimes then
   * want the rows innermost: {@code [experts, K/2, rows]}.
   */
  @JsonIgnore
  public boolean isStacked() {
    return weight.shape().size() == 3;
  }

  /** Rows that are encoded together: of a stack those of one expert, else one. */
  @JsonIgnore
  public long rowsTogether() {
    return isStacked() ? weight.shape().get(1) : 1;
  }

  /** Its tensors in the source. */
  List<LocatedTensor> sources() {
    return scale == null ? List.of(weight) : List.of(weight, scale);
  }

  /** Bytes that it has in the source. */
  long sourceBytes() {
    return weight.length() + (scale == null ? 0 : scale.length());
  }
}
