package org.sparkfp4.functions;

import java.util.Arrays;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.kernels.Nvfp4Kernel;

/** The members of one row, [rows, cols] each, that share one global scale. */
final class WeightUnit {
  private final Segments segments;
  private final long[] rows;
  private final long cols;
  private final Float knownAmax;

  /**
   * @param knownAmax null where it is yet to be found
   * @throws IllegalArgumentException if cols, a member's length or the amax cannot be
   */
  WeightUnit(Segments segments, Long cols, Float knownAmax) {
    if (cols == null) {
      throw new IllegalArgumentException("Invalid cols: null, must be a positive multiple of " + Nvfp4.BLOCK);
    }

    this.segments = segments;
    this.rows = segments.rows(cols);
    this.cols = cols;
    this.knownAmax = knownAmax;
    if (knownAmax != null) {
      Nvfp4.isZero(knownAmax);
    }
  }

  /** Bytes of the members' packed codes, [rows, cols / 2] each. */
  long packedBytes() {
    return Arrays.stream(rows).sum() * (cols / 2);
  }

  /** Bytes of the members' block scales, [rows, cols / 16] each. */
  long scalesBytes() {
    return Arrays.stream(rows).sum() * (cols / Nvfp4.BLOCK);
  }

  /**
   * Encodes all members with one global scale, each member's bytes after the last one's.
   *
   * @param packed address of {@link #packedBytes} bytes
   * @param scales address of {@link #scalesBytes} bytes
   * @throws org.sparkfp4.formats.NonFiniteException if a weight is not finite; its segment is the member
   */
  Encoded encode(Nvfp4Kernel kernel, Nvfp4Recipe recipe, long packed, long scales) {
    float amax =
        knownAmax != null ? knownAmax : kernel.amax(segments.type(), segments.addresses(), segments.elements());
    ErrorSums[] sums = new ErrorSums[rows.length];
    Arrays.setAll(sums, member -> new ErrorSums());
    kernel.encode(recipe, segments.type(), segments.addresses(), rows, cols, amax, packed, scales, sums);
    return new Encoded(amax, sums);
  }

  /** What is found beside the bytes. */
  record Encoded(float amax, ErrorSums[] sums) {
    /** The sum of w^2 of every member. */
    double[] sumSquares() {
      return Arrays.stream(sums).mapToDouble(ErrorSums::squares).toArray();
    }

    /** The sum of (w - dequantized w)^2 of every member. */
    double[] squaredErrors() {
      return Arrays.stream(sums).mapToDouble(ErrorSums::squaredErrors).toArray();
    }
  }
}
