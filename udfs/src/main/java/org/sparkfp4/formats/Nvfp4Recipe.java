package org.sparkfp4.formats;

/**
 * Whose arithmetic NVFP4 follows, byte for byte. Both producers agree on the E2M1 grid, on blocks of 16 and on the
 * packing; they differ in the scales.
 */
public enum Nvfp4Recipe {
  /**
   * NVIDIA Model Optimizer's dynamic path on a CPU. The global scale s2 = amax / 2688 multiplies to dequantize, and
   * nothing is rounded to the source's type.
   */
  MODELOPT(0x38) {
    @Override
    float nonZeroGlobalScale(float amax, ElementType type) {
      return amax / RANGE;
    }

    @Override
    float searchedGlobalScale(float amax) {
      return amax / SEARCHED_RANGE;
    }

    @Override
    float zeroGlobalScale() {
      return 1 / RANGE;
    }

    @Override
    int blockScale(float blockAmax, float largest, float globalScale, ElementType type) {
      float ratio = blockAmax / (largest * globalScale);
      if (ratio == 0) {
        return zeroScale();
      }

      // A block may be all but zero beside its tensor: its scale must not be, for it divides.
      return E4M3.encode(Math.max(E4M3.MIN_POSITIVE, ratio));
    }

    @Override
    public float dequantFactor(int scaleByte, float globalScale) {
      return E4M3.decode(scaleByte) * globalScale;
    }
  },

  /**
   * compressed-tensors and llm-compressor. The global scale G, about 2688 / amax, divides to dequantize. From a BF16
   * source each step of G, and a sixth of the block's amax, is rounded to bfloat16; F16 and F32 sources stay in
   * binary32.
   */
  COMPRESSED_TENSORS(0x20) {
    @Override
    float nonZeroGlobalScale(float amax, ElementType type) {
      return roundTo(type, roundTo(type, 1 / amax) * RANGE);
    }

    @Override
    float searchedGlobalScale(float amax) {
      return SEARCHED_RANGE / amax;
    }

    @Override
    float zeroGlobalScale() {
      return 1;
    }

    @Override
    int blockScale(float blockAmax, float largest, float globalScale, ElementType type) {
      int scale = E4M3.encode(globalScale * roundTo(type, blockAmax / largest));
      return scale == 0 ? zeroScale() : scale;
    }

    @Override
    public float dequantFactor(int scaleByte, float globalScale) {
      return E4M3.decode(scaleByte) / globalScale;
    }
  };

  /** What the largest element may be in units of the global scale: the largest element code times the largest scale. */
  static final float RANGE = E2M1.MAX * E4M3.MAX;

  /**
   * The same where scales are searched: the scale of the largest block is 256 where its largest element becomes 6, 384
   * where that becomes 4, and 448 is above.
   */
  static final float SEARCHED_RANGE = E2M1.MAX * 256;

  private static final float FOUR = 4;

  private final int zeroScale;

  Nvfp4Recipe(int zeroScale) {
    this.zeroScale = zeroScale;
  }

  /**
   * The global scale as the checkpoint stores it: s2 for ModelOpt, G for compressed-tensors.
   *
   * <p>A zero tensor ({@link Nvfp4#isZero}) gets 1/2688 or 1, respectively, so that nothing divides by zero.
   *
   * @param amax the largest |w| of all tensors that share the scale
   * @param type the type of the source's elements
   * @throws IllegalArgumentException if {@code amax} is negative or not finite
   */
  public final float globalScale(float amax, ElementType type) {
    return Nvfp4.isZero(amax) ? zeroGlobalScale() : nonZeroGlobalScale(amax, type);
  }

  /**
   * The E4M3 byte that scales a block: never zero, never NaN, never negative.
   *
   * @param blockAmax the largest |w| of the block
   * @param globalScale the global scale as stored
   * @param type the type of the source's elements
   */
  public final int blockScale(float blockAmax, float globalScale, ElementType type) {
    return blockScale(blockAmax, E2M1.MAX, globalScale, type);
  }

  /** The same rule where the block's largest |w| is to become 4, not 6. */
  final int blockScaleToFour(float blockAmax, float globalScale, ElementType type) {
    return blockScale(blockAmax, FOUR, globalScale, type);
  }

  /** @param largest the value of the code that the block's largest |w| is to become */
  abstract int blockScale(float blockAmax, float largest, float globalScale, ElementType type);

  /** The d of {@code w = e2m1(code) * d} for a block's scale byte and the global scale as stored. */
  public abstract float dequantFactor(int scaleByte, float globalScale);

  /** The scale byte of a block of zeros. */
  public final int zeroScale() {
    return zeroScale;
  }

  abstract float nonZeroGlobalScale(float amax, ElementType type);

  abstract float searchedGlobalScale(float amax);

  abstract float zeroGlobalScale();

  private static float roundTo(ElementType type, float x) {
    return type == ElementType.BF16 ? BFloat16.round(x) : x;
  }
}
