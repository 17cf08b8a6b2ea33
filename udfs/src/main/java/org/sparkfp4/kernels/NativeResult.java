package org.sparkfp4.kernels;

import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.NonFiniteException;

/** What a native call finds beside the bytes that it writes. */
final class NativeResult {
  private final ErrorSums[] sums;
  private final float[] value = new float[1];
  private final long[] where = new long[2];
  private final double[] totals;

  /** That of a call without sums. */
  NativeResult() {
    this(null);
  }

  /** @param sums take those of the segments, or null */
  NativeResult(ErrorSums[] sums) {
    this.sums = sums;
    this.totals = sums == null ? null : new double[2 * sums.length];
  }

  /** One: an amax, or a value that is refused. */
  float[] value() {
    return value;
  }

  /** Two: an exponent, a count, or the segment and the index of a value that is refused. */
  long[] where() {
    return where;
  }

  /** Two a segment, or null. */
  double[] totals() {
    return totals;
  }

  /** Hands on the sums of a call that succeeded. */
  void setSums() {
    if (sums != null) {
      for (int i = 0; i < sums.length; i++) {
        sums[i].set(totals[2 * i], totals[2 * i + 1]);
      }
    }
  }

  /** The value that is refused. */
  NonFiniteException nonFinite() {
    return new NonFiniteException((int) where[0], where[1], value[0]);
  }
}
