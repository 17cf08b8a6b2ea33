package org.sparkfp4.checkpoint;

import java.io.Serializable;
import org.sparkfp4.formats.WeightScheme;

/**
 * A weight that a source stores as codes with scales beside them.
 *
 * @param weight its codes; the shape is the logical {@code [rows, K]}, which that of packed codes is not
 * @param scale its scales, {@link WeightScheme#scaleRows} times {@link WeightScheme#scaleCols} of them; they may lie in
 *     another file
 * @param scheme what codes and scales are
 */
public record StoredWeight(LocatedTensor weight, LocatedTensor scale, WeightScheme scheme) implements Serializable {}
