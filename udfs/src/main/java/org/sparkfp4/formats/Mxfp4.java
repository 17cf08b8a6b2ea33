package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * MXFP4 sources (OCP Microscaling Formats 1.0: E2M1 codes, an E8M0 scale for every 32 consecutive elements of a row),
 * and their cast to NVFP4, which is exact where the exponents allow it.
 *
 * <p>With k = s - 127 of a block and kmax the largest of all tensors that share a global scale, m = kmax - 8: the
 * global scale is 2^m (2^-m in the checkpoints of compressed-tensors), and the block becomes two blocks of 16 with the
 * same codes and the E4M3 scale 2^(k - m), for k from kmax - 17 on. A block of smaller scale is quantized anew, as the
 * recipe does it with this global scale. A scale byte of 0 marks a block of zeros. NaN scales are refused, and so are
 * those above 2^124, for which the amax 2688 * 2^m is not finite.
 */
public final class Mxfp4 {
  /** Elements that share a source scale. */
  public static final int BLOCK = 32;

  /** The scheme of these sources, for a kernel that dequantizes them. */
  public static final WeightScheme SCHEME = new WeightScheme(CodeType.E2M1, ScaleType.E8M0, 1, BLOCK);

  /** The exponent of a unit without blocks, or of blocks of zeros alone. */
  public static final int NO_EXPONENT = -E8M0.BIAS;

  /** E4M3 has the powers of two from 2^-9 to 2^8, so this is how far below kmax the cast is exact. */
  private static final int EXACT_BELOW = 17;

  /** The exponent of kmax's block in units of the global scale. */
  private static final int TOP = 8;

  private static final int HALVES = BLOCK / Nvfp4.BLOCK;
  private static final int LARGEST_SCALE = 124 + E8M0.BIAS;

  /** floor(log2(2688)) */
  private static final int RANGE_EXPONENT = 11;

  private Mxfp4() {}

  /**
   * The largest k over all scales; -127 where there are none.
   *
   * @param scales E8M0 bytes, from position to limit
   * @throws NonFiniteException naming the first element of the first block whose scale is refused; the segment is 0
   */
  public static int largestExponent(ByteBuffer scales) {
    int largest = 0;
    for (int i = 0; i < scales.remaining(); i++) {
      largest = Math.max(largest, scale(scales, scales.position() + i, i));
    }

    return largest - E8M0.BIAS;
  }

  /**
   * The amax that stands for a kmax, 2688 * 2^(kmax - 8): exact, and zero in the sense of {@link Nvfp4#isZero} if and
   * only if 2^m would be subnormal.
   */
  public static float amax(int kmax) {
    checkExponent(kmax);
    return Math.scalb(Nvfp4Recipe.RANGE, kmax - TOP);
  }

  /** The kmax that {@link #amax} stands for. */
  public static int exponent(float amax) {
    int kmax = Math.getExponent(amax) - RANGE_EXPONENT + TOP;
    if (kmax < -E8M0.BIAS || kmax > LARGEST_SCALE - E8M0.BIAS || amax(kmax) != amax) {
      throw new IllegalArgumentException("Invalid amax: " + amax + ", must be 2688 times a power of two for MXFP4");
    }

    return kmax;
  }

  /** The global scale as the checkpoint stores it: 2^m or 2^-m, and the recipe's own for a unit of zeros. */
  public static float globalScale(Nvfp4Recipe recipe, int kmax) {
    if (Nvfp4.isZero(amax(kmax))) {
      return recipe.globalScale(0, ElementType.F32);
    }

    int m = kmax - TOP;
    return Math.scalb(1f, recipe == Nvfp4Recipe.MODELOPT ? m : -m);
  }

  /**
   * Casts a tensor, or some rows of it.
   *
   * @param codes [rows, cols / 2], from position to limit
   * @param scales [rows, cols / 32], from position to limit
   * @param cols a multiple of 32
   * @param kmax as {@link #largestExponent} gives it over all tensors that share the global scale
   * @param packed takes rows * cols / 2 bytes
   * @param scalesOut takes rows * cols / 16 bytes
   * @param sums where these rows' errors are added, or null to skip that work
   * @return how many blocks of 16 were quantized anew
   * @throws NonFiniteException as {@link #largestExponent} does
   * @throws IllegalArgumentException if cols is no multiple of 32, a buffer does not fit, or a scale exceeds 2^kmax
   */
  public static long cast(Nvfp4Recipe recipe, ByteBuffer codes, ByteBuffer scales, long rows, long cols, int kmax,
      ByteBuffer packed, ByteBuffer scalesOut, ErrorSums sums) {
    if (rows < 0 || cols < 0 || cols % BLOCK != 0) {
      throw new IllegalArgumentException(
          "Invalid shape: [" + rows + ", " + cols + "], columns must be a multiple of " + BLOCK);
    }

    int blocks = Nvfp4.blocks(rows, cols, packed, scalesOut);
    if (Nvfp4.isZero(amax(kmax))) {
      if (largestExponent(scales) > kmax) {
        throw aboveLargest(kmax);
      }

      Nvfp4.encodeZero(recipe, rows, cols, packed, scalesOut);
      return 0;
    }

    QuantizedWeights weights = new QuantizedWeights(SCHEME, codes, scales, rows, cols);
    ByteBuffer codesIn = codes.slice().order(ByteOrder.LITTLE_ENDIAN);
    float globalScale = globalScale(recipe, kmax);
    BlockEncoder encoder = new BlockEncoder(
        recipe, ScaleChoice.RTN, ElementType.F32, globalScale, packed, scalesOut, sums);
    float[] w = new float[Nvfp4.BLOCK];
    float[] zeros = new float[Nvfp4.BLOCK];
    long requantized = 0;
    for (int block = 0; block < blocks; block++) {
      int index = block / HALVES;
      int scale = scale(scales, scales.position() + index, index);
      int below = kmax - (scale - E8M0.BIAS);
      if (below < 0) {
        throw aboveLargest(kmax);
      }

      weights.load(block, w);
      if (scale == 0) {
        encoder.add(zeros, 0, recipe.zeroScale());
      } else if (below <= EXACT_BELOW) {
        encoder.add(w, codesIn.getLong(block * Nvfp4.PACKED_BLOCK), E4M3.encode(Math.scalb(1f, TOP - below)));
      } else {
        encoder.add(w);
        requantized++;
      }
    }

    return requantized;
  }

  /** The error of a cast whose blocks have a larger scale than it was told. */
  public static IllegalArgumentException aboveLargest(int kmax) {
    return new IllegalArgumentException("Invalid exponent: " + kmax + ", a block has a larger scale than 2^" + kmax
        + "; it must be the largest of all tensors that share the global scale");
  }

  private static int scale(ByteBuffer scales, int position, long index) {
    int scale = scales.get(position) & 0xFF;
    if (scale > LARGEST_SCALE) {
      throw new NonFiniteException(0, index * BLOCK, scale == E8M0.NAN ? Float.NaN : Float.POSITIVE_INFINITY);
    }

    return scale;
  }

  private static void checkExponent(int kmax) {
    if (kmax < -E8M0.BIAS || kmax > LARGEST_SCALE - E8M0.BIAS) {
      throw new IllegalArgumentException("Invalid exponent: " + kmax + ", must be from " + -E8M0.BIAS + " to "
          + (LARGEST_SCALE - E8M0.BIAS));
    }
  }
}
