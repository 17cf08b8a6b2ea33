package org.sparkfp4.output;

import java.io.Serializable;

/**
 * What a conversion could not keep: where an expert's gate and up have two global scales and a layout has room for one,
 * the block scales of the smaller side are rounded anew under the larger scale; and a layout may store global scales in
 * fewer bits.
 *
 * @param modules matrices whose block scales were rounded
 * @param scales their block scales
 * @param inexact of these, such as stand for another value than before
 * @param subnormal of these, such as are below 2^-6 now, and not zero
 * @param flushed of these, such as became zero
 * @param globals global scales that are stored as another value; 0 in the records of versions that did not count them
 */
public record RoundedScales(long modules, long scales, long inexact, long subnormal, long flushed, long globals)
    implements Serializable {
  public static final RoundedScales NONE = new RoundedScales(0, 0, 0, 0, 0, 0);

  /** The sum of two. */
  public RoundedScales plus(RoundedScales other) {
    return new RoundedScales(modules + other.modules, scales + other.scales, inexact + other.inexact,
        subnormal + other.subnormal, flushed + other.flushed, globals + other.globals);
  }
}
