package org.sparkfp4.calibration;

import java.util.ArrayList;
import java.util.List;

/**
 * How many blocks of 16 activations have a largest magnitude within each of some bounds. Counts add up exactly, which
 * percentiles themselves do not.
 *
 * <p>Bounds are {@code 2^e (1 + s/8)}, s from 0 to 7, so that a bin is no wider than an eighth of its beginning: bin 0
 * is below 2^-40, zeros among them; bins 1 to 640 follow up to 2^40, and the last is above.
 */
final class BlockAmaxHistogram {
  private static final int STEPS_BITS = 3;
  private static final int SHIFT = 23 - STEPS_BITS;
  private static final int LEAST_EXPONENT = -40;
  private static final int LARGEST_EXPONENT = 40;
  private static final int FIRST = Float.floatToRawIntBits(Math.scalb(1f, LEAST_EXPONENT)) >>> SHIFT;
  private static final int STEPS = (LARGEST_EXPONENT - LEAST_EXPONENT) << STEPS_BITS;

  static final int BINS = STEPS + 2;

  private BlockAmaxHistogram() {}

  /** The bin of a block's amax, finite and not negative. */
  static int bin(float amax) {
    int step = (Float.floatToRawIntBits(amax) >>> SHIFT) - FIRST;
    return Math.max(-1, Math.min(STEPS, step)) + 1;
  }

  /** Where each bin begins, in order; it ends where the next one begins. */
  static List<Float> bounds() {
    List<Float> bounds = new ArrayList<>(BINS);
    bounds.add(0f);
    for (int bin = 1; bin < BINS; bin++) {
      bounds.add(begin(bin));
    }

    return bounds;
  }

  private static float begin(int bin) {
    return Float.intBitsToFloat((bin - 1 + FIRST) << SHIFT);
  }

  /**
   * A bound that no more than the given share of the blocks are above, and no larger than {@code amax}; blocks of bin
   * 0, which are zeros in any format here, are not counted. 0 where there are no others.
   */
  static float atMost(long[] histogram, double share, float amax) {
    int bin = binOf(histogram, share);
    return bin == 0 ? 0 : bin == BINS - 1 ? amax : Math.min(amax, begin(bin + 1));
  }

  /** The beginning of the bin in which the given share of the blocks is reached, bin 0 not counted. */
  static float atLeast(long[] histogram, double share) {
    int bin = binOf(histogram, share);
    return bin == 0 ? 0 : begin(bin);
  }

  private static int binOf(long[] histogram, double share) {
    long all = 0;
    for (int bin = 1; bin < BINS; bin++) {
      all += histogram[bin];
    }

    long below = 0;
    for (int bin = 1; bin < BINS; bin++) {
      below += histogram[bin];
      if (below > 0 && below >= share * all) {
        return bin;
      }
    }

    return 0;
  }
}
