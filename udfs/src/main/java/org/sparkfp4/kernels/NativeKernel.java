package org.sparkfp4.kernels;

import java.util.Arrays;
import java.util.Optional;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.ScaleType;
import org.sparkfp4.formats.WeightScheme;
import org.sparkfp4.formats.Weighting;

/** A tier of the native library. */
final class NativeKernel implements Nvfp4Kernel {
  /** In the order of {@code sparkfp4_tier}, slowest first. */
  enum Tier {
    SCALAR("scalar"),
    AVX2("avx2"),
    AVX512("avx512");

    private final String title;

    Tier(String title) {
      this.title = title;
    }

    String title() {
      return title;
    }

    /** The tier of a title, unless it is that of Java or of a device. */
    static Optional<Tier> named(String title) {
      return Arrays.stream(values()).filter(tier -> tier.title.equals(title)).findFirst();
    }
  }

  private final Tier tier;

  NativeKernel(Tier tier) {
    this.tier = tier;
  }

  @Override
  public String tier() {
    return tier.title;
  }

  @Override
  public float amax(ElementType type, long[] addresses, long[] elements) {
    Segments.check(addresses, elements);
    NativeResult result = new NativeResult();
    int status =
        NativeBinding.amax(tier.ordinal(), code(type), addresses, elements, result.value(), result.where());
    check(status, result);
    return result.value()[0];
  }

  @Override
  public void encode(Nvfp4Recipe recipe, BlockSearch search, ElementType type, long[] addresses, long[] rows, long cols,
      float amax, long packedAddress, long scalesAddress, ErrorSums[] sums) {
    long[] blocks = Segments.blocks(addresses, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packedAddress, scalesAddress);
      return;
    }

    NativeResult result = new NativeResult(sums);
    int status = NativeBinding.encode(tier.ordinal(), code(recipe), code(search), search.importance(), code(type),
        addresses, rows, cols, search.search().globalScale(recipe, amax, type), packedAddress, scalesAddress,
        result.totals(), result.value(), result.where());
    check(status, result);
    result.setSums();
  }

  @Override
  public float amax(WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols) {
    Segments.check(codes, scales, rows);
    Segments.blocks(codes, rows, cols, null);
    NativeResult result = new NativeResult();
    int status = NativeBinding.quantizedAmax(tier.ordinal(), code(scheme.codes()), code(scheme.scales()),
        scheme.blockRows(), scheme.blockCols(), codes, scales, rows, cols, result.value(), result.where());
    check(status, result);
    return result.value()[0];
  }

  @Override
  public void encode(Nvfp4Recipe recipe, BlockSearch search, WeightScheme scheme, long[] codes, long[] scales,
      long[] rows, long cols, float amax, long packed, long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    long[] blocks = Segments.blocks(codes, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packed, scalesOut);
      return;
    }

    NativeResult result = new NativeResult(sums);
    int status = NativeBinding.quantizedEncode(tier.ordinal(), code(recipe), code(search), search.importance(),
        code(scheme.codes()), code(scheme.scales()), scheme.blockRows(), scheme.blockCols(), codes, scales, rows, cols,
        search.search().globalScale(recipe, amax, ElementType.F32), packed, scalesOut, result.totals(), result.value(),
        result.where());
    check(status, result);
    result.setSums();
  }

  @Override
  public int largestExponent(long[] scales, long[] counts) {
    Segments.check(scales, counts);
    NativeResult result = new NativeResult();
    check(NativeBinding.largestExponent(scales, counts, result.value(), result.where()), result);
    return (int) result.where()[0];
  }

  @Override
  public long castMxfp4(Nvfp4Recipe recipe, long[] codes, long[] scales, long[] rows, long cols, int kmax, long packed,
      long scalesOut, ErrorSums[] sums) {
    Segments.check(codes, scales, rows);
    long[] blocks = Segments.mxfp4Blocks(codes, rows, cols, sums);
    if (Nvfp4.isZero(Mxfp4.amax(kmax))) {
      Segments.checkExponents(this, scales, blocks, kmax);
      Segments.encodeZero(recipe, blocks, packed, scalesOut);
      return 0;
    }

    NativeResult result = new NativeResult(sums);
    int status = NativeBinding.castMxfp4(tier.ordinal(), code(recipe), codes, scales, rows, cols, kmax, packed,
        scalesOut, result.totals(), result.value(), result.where());
    if (status == NativeBinding.INVALID) {
      // All other arguments have been checked.
      throw Mxfp4.aboveLargest(kmax);
    }

    check(status, result);
    result.setSums();
    return result.where()[0];
  }

  @Override
  public void dequantizeToBf16(WeightScheme scheme, long codes, long scales, long rows, long cols, long out) {
    Segments.checkTensor(codes, scales, rows, cols);
    NativeResult result = new NativeResult();
    int status = NativeBinding.dequantizeToBf16(tier.ordinal(), code(scheme.codes()), code(scheme.scales()),
        scheme.blockRows(), scheme.blockCols(), codes, scales, rows, cols, out, result.value(), result.where());
    check(status, result);
  }

  private void check(int status, NativeResult result) {
    switch (status) {
      case NativeBinding.OK -> { }
      case NativeBinding.NON_FINITE -> throw result.nonFinite();
      case NativeBinding.OUT_OF_MEMORY -> throw new OutOfMemoryError("Cannot allocate the segments of a native kernel");
      default -> throw new IllegalStateException("Cannot run the " + tier() + " kernel: status " + status);
    }
  }

  /** As {@code sparkfp4_dtype} numbers them. */
  static int code(ElementType type) {
    return switch (type) {
      case BF16 -> 0;
      case F16 -> 1;
      case F32 -> 2;
    };
  }

  /** As {@code sparkfp4_recipe} numbers them. */
  static int code(Nvfp4Recipe recipe) {
    return switch (recipe) {
      case MODELOPT -> 0;
      case COMPRESSED_TENSORS -> 1;
    };
  }

  /** As {@code sparkfp4_search} numbers them. */
  static int code(BlockSearch search) {
    return switch (search.search()) {
      case RTN -> 0;
      case FOUR_OVER_SIX -> 1;
      case SWEEP -> 2;
      case WEIGHTED -> search.weighting() == Weighting.DIAGONAL ? 3 : 4;
    };
  }

  /** As {@code sparkfp4_codes} numbers them. */
  static int code(CodeType type) {
    return switch (type) {
      case E4M3 -> 0;
      case INT4 -> 1;
      case E2M1 -> 2;
    };
  }

  /** As {@code sparkfp4_scale_type} numbers them. */
  static int code(ScaleType type) {
    return switch (type) {
      case F32 -> 0;
      case BF16 -> 1;
      case F16 -> 2;
      case E8M0 -> 3;
    };
  }
}
