package org.sparkfp4.kernels;

import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.WeightScheme;

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
  }

  private final Tier tier;
  private final JavaKernel reference = new JavaKernel();

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
    float[] value = new float[1];
    long[] where = new long[2];
    check(NativeBinding.amax(tier.ordinal(), code(type), addresses, elements, value, where), value, where);
    return value[0];
  }

  @Override
  public void encode(Nvfp4Recipe recipe, ElementType type, long[] addresses, long[] rows, long cols, float amax,
      long packedAddress, long scalesAddress, ErrorSums[] sums) {
    long[] blocks = Segments.blocks(addresses, rows, cols, sums);
    if (Nvfp4.isZero(amax)) {
      Segments.encodeZero(recipe, blocks, packedAddress, scalesAddress);
      return;
    }

    double[] totals = sums == null ? null : new double[2 * sums.length];
    float[] value = new float[1];
    long[] where = new long[2];
    int status = NativeBinding.encode(tier.ordinal(), code(recipe), code(type), addresses, rows, cols,
        recipe.globalScale(amax, type), packedAddress, scalesAddress, totals, value, where);
    check(status, value, where);
    if (sums != null) {
      for (int i = 0; i < sums.length; i++) {
        sums[i].set(totals[2 * i], totals[2 * i + 1]);
      }
    }
  }

  @Override
  public float amax(WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols) {
    return reference.amax(scheme, codes, scales, rows, cols);
  }

  @Override
  public void encode(Nvfp4Recipe recipe, WeightScheme scheme, long[] codes, long[] scales, long[] rows, long cols,
      float amax, long packed, long scalesOut, ErrorSums[] sums) {
    reference.encode(recipe, scheme, codes, scales, rows, cols, amax, packed, scalesOut, sums);
  }

  @Override
  public int largestExponent(long[] scales, long[] counts) {
    return reference.largestExponent(scales, counts);
  }

  @Override
  public long castMxfp4(Nvfp4Recipe recipe, long[] codes, long[] scales, long[] rows, long cols, int kmax, long packed,
      long scalesOut, ErrorSums[] sums) {
    return reference.castMxfp4(recipe, codes, scales, rows, cols, kmax, packed, scalesOut, sums);
  }

  @Override
  public void dequantizeToBf16(WeightScheme scheme, long codes, long scales, long rows, long cols, long out) {
    reference.dequantizeToBf16(scheme, codes, scales, rows, cols, out);
  }

  private void check(int status, float[] value, long[] where) {
    switch (status) {
      case NativeBinding.OK -> { }
      case NativeBinding.NON_FINITE -> throw new NonFiniteException((int) where[0], where[1], value[0]);
      case NativeBinding.OUT_OF_MEMORY -> throw new OutOfMemoryError("Cannot allocate the segments of a native kernel");
      default -> throw new IllegalStateException("Cannot run the " + tier() + " kernel: status " + status);
    }
  }

  /** As {@code sparkfp4_dtype} numbers them. */
  private static int code(ElementType type) {
    return switch (type) {
      case BF16 -> 0;
      case F16 -> 1;
      case F32 -> 2;
    };
  }

  /** As {@code sparkfp4_recipe} numbers them. */
  private static int code(Nvfp4Recipe recipe) {
    return switch (recipe) {
      case MODELOPT -> 0;
      case COMPRESSED_TENSORS -> 1;
    };
  }
}
