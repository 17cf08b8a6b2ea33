package org.sparkfp4.functions;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Supplier;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.formats.WeightRows;
import org.sparkfp4.gptq.Compensation;
import org.sparkfp4.kernels.BlockSearch;
import org.sparkfp4.kernels.Nvfp4Kernel;

/** The members of one row, [rows, cols] each, that share one global scale. */
final class WeightUnit {
  private final Segments segments;
  private final SourceScheme scheme;
  private final long[] rows;
  private final long cols;
  private final Float knownAmax;
  private final ImportanceBytes importance;
  private final Supplier<Compensation> compensation;

  /**
   * @param knownAmax null where it is yet to be found
   * @throws IllegalArgumentException if cols, a member's length or the amax cannot be
   */
  WeightUnit(Segments segments, Long cols, Float knownAmax) {
    this(segments, cols, knownAmax, null);
  }

  /**
   * @param importance what a weighted search weighs by; null where there are no statistics
   * @throws IllegalArgumentException if it is not that of the columns, too
   */
  WeightUnit(Segments segments, Long cols, Float knownAmax, ImportanceBytes importance) {
    this(segments, cols, knownAmax, importance, null);
  }

  /** @param compensation gives encoded members other codes; null to leave them as the search has them */
  WeightUnit(
      Segments segments,
      Long cols,
      Float knownAmax,
      ImportanceBytes importance,
      Supplier<Compensation> compensation) {
    this.segments = segments;
    this.scheme = segments.scheme();
    this.rows = segments.rows(cols);
    this.cols = cols;
    this.knownAmax = knownAmax;
    this.importance = importance;
    this.compensation = compensation;
    if (importance != null) {
      importance.check(this.cols);
    }

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
   * The largest |w|; of an MXFP4 unit the amax that stands for its largest exponent.
   *
   * @throws NonFiniteException if a weight is not finite; its segment is the member
   */
  float amax(Nvfp4Kernel kernel) {
    if (scheme.isMxfp4()) {
      return Mxfp4.amax(kernel.largestExponent(segments.scales(), segments.scaleCounts()));
    }

    return scheme.isStored()
        ? kernel.amax(scheme.stored(), segments.addresses(), segments.scales(), rows, cols)
        : kernel.amax(scheme.plain(), segments.addresses(), segments.elements());
  }

  /**
   * Encodes all members with one global scale, each member's bytes after the last one's. A weighted search of a unit
   * without importance sweeps.
   *
   * @param packed address of {@link #packedBytes} bytes
   * @param scales address of {@link #scalesBytes} bytes
   * @throws NonFiniteException if a weight is not finite; its segment is the member
   */
  Encoded encode(Nvfp4Kernel kernel, Nvfp4Recipe recipe, ScaleSearch search, long packed, long scales) {
    ErrorSums[] sums = new ErrorSums[rows.length];
    Arrays.setAll(sums, member -> new ErrorSums());
    if (scheme.isMxfp4()) {
      return cast(kernel, recipe, knownAmax != null ? knownAmax : amax(kernel), packed, scales, sums);
    }

    float amax = scheme.isStored()
        ? encodeStored(kernel, recipe, choice(search), packed, scales, sums)
        : encodePlain(kernel, recipe, choice(search), packed, scales, sums);
    float globalScale = search.globalScale(recipe, amax, scheme.elements());
    long[] gptqRows = new long[rows.length];
    if (compensation != null && !Nvfp4.isZero(amax)) {
      compensate(recipe, globalScale, packed, scales, sums, gptqRows);
    }

    return new Encoded(amax, globalScale, new long[rows.length], sums, gptqRows);
  }

  private void compensate(
      Nvfp4Recipe recipe, float globalScale, long packed, long scales, ErrorSums[] sums, long[] gptqRows) {
    try (Compensation better = compensation.get()) {
      long before = 0;
      for (int member = 0; member < rows.length; member++) {
        Optional<ErrorSums> improved = better.improve(
            weights(member), rows[member], recipe,
            buffer(packed + before * (cols / 2), rows[member] * (cols / 2)),
            buffer(scales + before * (cols / Nvfp4.BLOCK), rows[member] * (cols / Nvfp4.BLOCK)), globalScale);
        if (improved.isPresent()) {
          sums[member] = improved.get();
          gptqRows[member] = rows[member];
        }

        before += rows[member];
      }
    }
  }

  private WeightRows weights(int member) {
    return WeightRows.of(
        scheme,
        buffer(segments.addresses()[member], scheme.dataBytes(rows[member], cols)),
        scheme.isStored() ? buffer(segments.scales()[member], scheme.scaleBytes(rows[member], cols)) : null,
        rows[member], cols);
  }

  private static ByteBuffer buffer(long address, long bytes) {
    return MemoryUtil.directBuffer(address, Math.toIntExact(bytes));
  }

  private BlockSearch choice(ScaleSearch search) {
    if (search != ScaleSearch.WEIGHTED) {
      return BlockSearch.of(search);
    }

    return importance == null
        ? BlockSearch.of(ScaleSearch.SWEEP)
        : BlockSearch.weighted(importance.weighting(cols), importance.address());
  }

  private float encodePlain(Nvfp4Kernel kernel, Nvfp4Recipe recipe, BlockSearch search, long packed, long scales,
      ErrorSums[] sums) {
    if (knownAmax == null) {
      return kernel.encodeUnit(recipe, search, scheme.plain(), segments.addresses(), rows, cols, packed, scales, sums);
    }

    kernel.encode(recipe, search, scheme.plain(), segments.addresses(), rows, cols, knownAmax, packed, scales, sums);
    return knownAmax;
  }

  private float encodeStored(Nvfp4Kernel kernel, Nvfp4Recipe recipe, BlockSearch search, long packed, long scales,
      ErrorSums[] sums) {
    if (knownAmax == null) {
      return kernel.encodeUnit(
          recipe, search, scheme.stored(), segments.addresses(), segments.scales(), rows, cols, packed, scales, sums);
    }

    kernel.encode(recipe, search, scheme.stored(), segments.addresses(), segments.scales(), rows, cols, knownAmax,
        packed, scales, sums);
    return knownAmax;
  }

  /** Member by member, so that each has a count of its own. */
  private Encoded cast(
      Nvfp4Kernel kernel, Nvfp4Recipe recipe, float amax, long packed, long scales, ErrorSums[] sums) {
    int kmax = Mxfp4.exponent(amax);
    long[] requantized = new long[rows.length];
    long before = 0;
    for (int member = 0; member < rows.length; member++) {
      try {
        requantized[member] = kernel.castMxfp4(
            recipe, one(segments.addresses(), member), one(segments.scales(), member), one(rows, member), cols, kmax,
            packed + before * (cols / 2), scales + before * (cols / Nvfp4.BLOCK), new ErrorSums[] {sums[member]});
      } catch (NonFiniteException e) {
        throw new NonFiniteException(member, e.index(), e.value());
      }

      before += rows[member];
    }

    return new Encoded(amax, Mxfp4.globalScale(recipe, kmax), requantized, sums, new long[rows.length]);
  }

  private static long[] one(long[] all, int member) {
    return new long[] {all[member]};
  }

  /**
   * What is found beside the bytes.
   *
   * @param requantized blocks of 16 of every member that an exact cast had no scale for
   * @param gptqRows rows of every member whose codes are GPTQ's
   */
  record Encoded(float amax, float globalScale, long[] requantized, ErrorSums[] sums, long[] gptqRows) {
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
