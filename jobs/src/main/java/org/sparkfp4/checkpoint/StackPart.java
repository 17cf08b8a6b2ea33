package org.sparkfp4.checkpoint;

import java.util.ArrayList;
import java.util.List;

/** What a tensor holds of the layers of all experts: their weights, or the parts of MXFP4 in gpt-oss' spelling. */
enum StackPart {
  WEIGHTS("", ".weight", 1),
  /** E2M1 codes, two a byte, {@code [experts, rows, K / 32, 16]}. */
  BLOCKS("_blocks", ".weight", 2),
  /** E8M0 scales, {@code [experts, rows, K / 32]}. */
  SCALES("_scales", ".weight_scale", 32);

  private static final long BLOCK_BYTES = 16;

  private final String suffix;
  private final String sliceSuffix;
  private final long elements;

  StackPart(String suffix, String sliceSuffix, long elements) {
    this.suffix = suffix;
    this.sliceSuffix = sliceSuffix;
    this.elements = elements;
  }

  /** What follows the stack's name in the tensor's. */
  String suffix() {
    return suffix;
  }

  /** What follows the module's name in that of a slice: the spelling of a weight that is not stacked. */
  String sliceSuffix() {
    return sliceSuffix;
  }

  /** Elements of the tensor in a row of K weights. */
  long cols(long k) {
    return k / elements;
  }

  /** Whether the part can have that order of dimensions: codes and scales only run along K. */
  boolean allows(StackOrder order) {
    return this == WEIGHTS || order == StackOrder.ROWS_K;
  }

  List<Long> shape(StackOrder order, long experts, long rows, long k) {
    if (this != BLOCKS) {
      return order.shape(experts, rows, cols(k));
    }

    List<Long> shape = new ArrayList<>(List.of(experts, rows, cols(k) / BLOCK_BYTES));
    shape.add(BLOCK_BYTES);
    return shape;
  }
}
