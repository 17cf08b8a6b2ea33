package org.sparkfp4.checkpoint;

import java.util.List;

/**
 * A tensor that holds linear layers of all experts of a layer.
 *
 * @param linears the layers whose rows it holds, in their order
 * @param interleaved whether the layers' rows alternate; else all rows of a layer follow those of the one before
 * @param orders the orders of dimensions that checkpoints of the family have; of several, config.json decides
 */
record Stack(List<String> linears, boolean interleaved, List<StackOrder> orders) {
  Stack {
    linears = linears == null ? List.of() : List.copyOf(linears);
    orders = orders == null ? List.of() : List.copyOf(orders);
  }
}
