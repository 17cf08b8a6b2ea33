package org.sparkfp4.plan;

import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * A linear layer of a unit.
 *
 * @param module the layer's module name: the weight's name without {@code .weight}
 * @param weight its weight {@code [rows, K]} in the source
 */
public record Member(String module, LocatedTensor weight) {}
