package org.sparkfp4.layouts;

import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.plan.Unit;

/**
 * How much of an MXFP4 source was cast exactly.
 *
 * @param requantized blocks of 16 that were out of the exact range
 * @param all blocks of 16 that were cast; 0 for any other source
 */
public record RequantizedBlocks(long requantized, long all) {
  /** For a plan of which so many blocks were out of range. */
  public static RequantizedBlocks of(QuantizationPlan plan, long requantized) {
    long all = plan.shards().stream()
        .flatMap(shard -> shard.units().stream())
        .filter(unit -> SourceScheme.parse(unit.scheme()).isMxfp4())
        .mapToLong(RequantizedBlocks::blocks)
        .sum();
    return new RequantizedBlocks(requantized, all);
  }

  private static long blocks(Unit unit) {
    return unit.members().stream().mapToLong(member -> member.weight().rows() * unit.cols() / Nvfp4.BLOCK).sum();
  }

  /** The share of weights that are exact, 0 to 1. */
  public double exactShare() {
    return all == 0 ? 0 : 1 - (double) requantized / all;
  }
}
