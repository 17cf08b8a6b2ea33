package org.sparkfp4.formats;

/**
 * The one order in which the norms and {@link ScaleRule#BEST_OF_TWO} add, so that every instruction set and a GPU give
 * the same sum, bit for bit.
 *
 * <p>Sixteen lanes: lane l has the elements 32 v + 2 l and 32 v + 2 l + 1, v = 0, 1, .... Each pair is added, the pairs
 * of a lane are added in the order of v, and the lanes by a tree: l with l + 8, then l + 4, l + 2, l + 1. Every addition
 * rounds once to binary32.
 */
final class LaneSum {
  static final int LANES = 16;

  /** Elements of which each lane has one pair. */
  static final int STEP = 2 * LANES;

  private LaneSum() {}

  /** The sum of the terms, whose number is a positive multiple of 32. */
  static float of(float[] terms) {
    float[] lanes = new float[LANES];
    for (int l = 0; l < LANES; l++) {
      lanes[l] = terms[2 * l] + terms[2 * l + 1];
      for (int first = STEP; first < terms.length; first += STEP) {
        lanes[l] += terms[first + 2 * l] + terms[first + 2 * l + 1];
      }
    }

    for (int half = LANES / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; l++) {
        lanes[l] += lanes[l + half];
      }
    }

    return lanes[0];
  }
}
