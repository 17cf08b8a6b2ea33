package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;

/**
 * NVFP4: E2M1 codes, an E4M3 scale for every 16 consecutive elements of a row, and one binary32 global scale.
 *
 * <p>A tensor [rows, cols] becomes packed [rows, cols / 2] (byte j of a row holds element 2j in its low half and 2j + 1
 * in its high half) and scales [rows, cols / 16], both row-major without padding. {@code cols} must be a multiple of
 * 16.
 *
 * <p>Buffers are used from their position on; neither position, limit nor byte order of a caller's buffer changes.
 */
public final class Nvfp4 {
  /** Elements that share a scale. */
  public static final int BLOCK = 16;

  static final int PACKED_BLOCK = BLOCK / 2;
  private static final int INFINITY_MAGNITUDE = Minifloat.magnitude(Float.POSITIVE_INFINITY);

  /** Below this amax / 2688 would be subnormal, which GPUs flush to zero. */
  private static final float SMALLEST_AMAX = Nvfp4Recipe.RANGE * Float.MIN_NORMAL;

  private Nvfp4() {}

  /**
   * Whether a tensor of this amax is written as zeros: every code 0, every block scale {@link Nvfp4Recipe#zeroScale}.
   * So are tensors below 2688 * 2^-126, whose global scale runtimes could not use.
   *
   * @throws IllegalArgumentException if {@code amax} is negative or not finite
   */
  public static boolean isZero(float amax) {
    if (!(amax >= 0 && amax <= Float.MAX_VALUE)) {
      throw new IllegalArgumentException("Invalid amax: " + amax + ", must be finite and not negative");
    }

    return amax < SMALLEST_AMAX;
  }

  /**
   * Refuses what no tensor's global scale is.
   *
   * @throws IllegalArgumentException if it is not positive and finite
   */
  public static void requireGlobalScale(float globalScale) {
    if (!(globalScale > 0 && globalScale <= Float.MAX_VALUE)) {
      throw new IllegalArgumentException("Invalid global scale: " + globalScale + ", must be positive and finite");
    }
  }

  /**
   * The largest |w|; 0 where there are no elements.
   *
   * @param data the elements, little-endian, from position to limit
   * @throws NonFiniteException naming the first NaN or infinite element; the segment is 0
   */
  public static float amax(ElementType type, ByteBuffer data) {
    if (data.remaining() % type.bytes() != 0) {
      throw new IllegalArgumentException(
          "Invalid data: " + data.remaining() + " bytes are no whole number of " + type + " elements");
    }

    ByteBuffer source = data.slice().order(ByteOrder.LITTLE_ENDIAN);
    int elements = source.limit() / type.bytes();
    int whole = elements - elements % BLOCK;
    float[] w = new float[BLOCK];
    int largest = 0;
    for (int i = 0; i < whole; i += BLOCK) {
      type.load(source, i * type.bytes(), w);
      largest = Math.max(largest, finiteMagnitude(w, i));
    }

    float[] rest = new float[elements - whole];
    type.load(source, whole * type.bytes(), rest);
    return Float.intBitsToFloat(Math.max(largest, finiteMagnitude(rest, whole)));
  }

  /**
   * The largest |w| of a quantized tensor; 0 where there are no elements.
   *
   * @param codes [rows, cols], from position to limit
   * @param scales of these rows, little-endian, from position to limit
   * @throws NonFiniteException naming the first element that is NaN or infinite once it is dequantized; the segment is
   *     0
   * @throws IllegalArgumentException if cols is no multiple of 16 or a buffer does not fit
   */
  public static float amax(WeightScheme scheme, ByteBuffer codes, ByteBuffer scales, long rows, long cols) {
    int blocks = blocks(rows, cols);
    QuantizedWeights source = new QuantizedWeights(scheme, codes, scales, rows, cols);
    float[] w = new float[BLOCK];
    int largest = 0;
    for (int block = 0; block < blocks; block++) {
      source.load(block, w);
      largest = Math.max(largest, finiteMagnitude(w, (long) block * BLOCK));
    }

    return Float.intBitsToFloat(largest);
  }

  /**
   * Encodes a tensor, or some rows of it. Not for zero tensors ({@link #isZero}): {@link #encodeZero}.
   *
   * @param choice how block scales are chosen; its importance begins with the column of the first element
   * @param data the elements [rows, cols], little-endian, from position to limit
   * @param globalScale as {@link ScaleSearch#globalScale} gives it
   * @param packed takes rows * cols / 2 bytes
   * @param scales takes rows * cols / 16 bytes
   * @param sums where these rows' errors are added, or null to skip that work
   * @throws NonFiniteException naming the first NaN or infinite element; the segment is 0
   * @throws IllegalArgumentException if cols is no multiple of 16, a buffer does not fit, or globalScale is not
   *     positive and finite
   */
  public static void encode(Nvfp4Recipe recipe, ScaleChoice choice, ElementType type, ByteBuffer data, long rows,
      long cols, float globalScale, ByteBuffer packed, ByteBuffer scales, ErrorSums sums) {
    int blocks = blocks(rows, cols, packed, scales);
    if (data.remaining() != rows * cols * type.bytes()) {
      throw new IllegalArgumentException(
          "Invalid data: " + data.remaining() + " bytes, [" + rows + ", " + cols + "] of " + type + " has "
              + rows * cols * type.bytes());
    }

    ByteBuffer source = data.slice().order(ByteOrder.LITTLE_ENDIAN);
    // Rows are whole blocks and nothing is padded, so the blocks of the tensor follow each other.
    BlockSource weights = (block, w) -> type.load(source, block * BLOCK * type.bytes(), w);
    encode(recipe, choice, type, weights, blocks, globalScale, packed, scales, sums);
  }

  /** The same by {@link ScaleSearch#RTN}. */
  public static void encode(Nvfp4Recipe recipe, ElementType type, ByteBuffer data, long rows, long cols,
      float globalScale, ByteBuffer packed, ByteBuffer scales, ErrorSums sums) {
    encode(recipe, ScaleChoice.RTN, type, data, rows, cols, globalScale, packed, scales, sums);
  }

  /**
   * Encodes a quantized tensor, or some rows of it that begin with a block of the scheme. Its dequantized weights are
   * F32 elements. Not for zero tensors.
   *
   * @param choice how block scales are chosen
   * @param codes [rows, cols], from position to limit
   * @param scales of these rows, little-endian, from position to limit
   * @param globalScale as {@link ScaleSearch#globalScale} gives it for F32
   * @param packed takes rows * cols / 2 bytes
   * @param scalesOut takes rows * cols / 16 bytes
   * @param sums where these rows' errors are added, or null to skip that work
   * @throws NonFiniteException as {@link #amax(WeightScheme, ByteBuffer, ByteBuffer, long, long)} does
   * @throws IllegalArgumentException if cols is no multiple of 16, a buffer does not fit, or globalScale is not
   *     positive and finite
   */
  public static void encode(Nvfp4Recipe recipe, ScaleChoice choice, WeightScheme scheme, ByteBuffer codes,
      ByteBuffer scales, long rows, long cols, float globalScale, ByteBuffer packed, ByteBuffer scalesOut,
      ErrorSums sums) {
    int blocks = blocks(rows, cols, packed, scalesOut);
    QuantizedWeights weights = new QuantizedWeights(scheme, codes, scales, rows, cols);
    encode(recipe, choice, ElementType.F32, weights, blocks, globalScale, packed, scalesOut, sums);
  }

  /** The same by {@link ScaleSearch#RTN}. */
  public static void encode(Nvfp4Recipe recipe, WeightScheme scheme, ByteBuffer codes, ByteBuffer scales, long rows,
      long cols, float globalScale, ByteBuffer packed, ByteBuffer scalesOut, ErrorSums sums) {
    encode(recipe, ScaleChoice.RTN, scheme, codes, scales, rows, cols, globalScale, packed, scalesOut, sums);
  }

  private static void encode(Nvfp4Recipe recipe, ScaleChoice choice, ElementType type, BlockSource source, int blocks,
      float globalScale, ByteBuffer packed, ByteBuffer scales, ErrorSums sums) {
    requireGlobalScale(globalScale);
    BlockEncoder encoder = new BlockEncoder(recipe, choice, type, globalScale, packed, scales, sums);
    float[] w = new float[BLOCK];
    for (int block = 0; block < blocks; block++) {
      source.load(block, w);
      finiteMagnitude(w, (long) block * BLOCK);
      encoder.add(w);
    }
  }

  /**
   * The codes of a tensor, or of some rows of it, under block scales that are given.
   *
   * @param data the elements [rows, cols], little-endian, from position to limit
   * @param globalScale as stored
   * @param scales E4M3 [rows, cols / 16]
   * @param packed takes rows * cols / 2 bytes
   * @throws NonFiniteException naming the first NaN or infinite element; the segment is 0
   * @throws IllegalArgumentException if cols is no multiple of 16, a buffer does not fit, or globalScale is not
   *     positive and finite
   */
  public static void encodeUnder(Nvfp4Recipe recipe, ElementType type, ByteBuffer data, long rows, long cols,
      float globalScale, ByteBuffer scales, ByteBuffer packed) {
    int blocks = blocks(rows, cols, packed, scales);
    requireGlobalScale(globalScale);
    ByteBuffer source = data.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer codesOut = packed.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer scalesIn = scales.slice();
    float[] w = new float[BLOCK];
    for (int block = 0; block < blocks; block++) {
      type.load(source, block * BLOCK * type.bytes(), w);
      finiteMagnitude(w, (long) block * BLOCK);
      float d = recipe.dequantFactor(scalesIn.get(block), globalScale);
      codesOut.putLong(block * PACKED_BLOCK, BlockEncoder.codes(w, d));
    }
  }

  /** Writes a zero tensor: codes 0, scales {@link Nvfp4Recipe#zeroScale}. Its error sums are zero: nothing to add. */
  public static void encodeZero(Nvfp4Recipe recipe, long rows, long cols, ByteBuffer packed, ByteBuffer scales) {
    int blocks = blocks(rows, cols, packed, scales);
    ByteBuffer codesOut = packed.slice();
    ByteBuffer scalesOut = scales.slice();
    for (int block = 0; block < blocks; block++) {
      codesOut.putLong(block * PACKED_BLOCK, 0);
      scalesOut.put(block, (byte) recipe.zeroScale());
    }
  }

  /**
   * Decodes to e2m1(code) * d. All NaN, of an E4M3 scale that is NaN or of zero times a d that overflows, are the
   * canonical one.
   *
   * @param packed [rows, cols / 2]
   * @param scales [rows, cols / 16]
   * @param globalScale as stored
   * @param out takes rows * cols floats
   * @throws IllegalArgumentException if cols is no multiple of 16, a buffer is too small, or globalScale is not
   *     positive and finite
   */
  public static void decode(Nvfp4Recipe recipe, ByteBuffer packed, ByteBuffer scales, long rows, long cols,
      float globalScale, FloatBuffer out) {
    int blocks = blocks(rows, cols, packed, scales);
    requireGlobalScale(globalScale);
    checkRoom("out", out.remaining(), rows * cols);
    ByteBuffer codesIn = packed.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer scalesIn = scales.slice();
    FloatBuffer target = out.slice();
    for (int block = 0; block < blocks; block++) {
      float d = recipe.dequantFactor(scalesIn.get(block), globalScale);
      long codes = codesIn.getLong(block * PACKED_BLOCK);
      for (int i = 0; i < BLOCK; i++) {
        target.put(block * BLOCK + i, Minifloat.canonical(E2M1.decode((int) (codes >>> 4 * i)) * d));
      }
    }
  }

  /** The largest magnitude as a float's bits. */
  private static int finiteMagnitude(float[] w, long firstIndex) {
    int largest = 0;
    for (float x : w) {
      largest = Math.max(largest, Minifloat.magnitude(x));
    }

    if (largest >= INFINITY_MAGNITUDE) {
      throw nonFinite(w, firstIndex);
    }

    return largest;
  }

  private static NonFiniteException nonFinite(float[] w, long firstIndex) {
    int i = 0;
    while (Float.isFinite(w[i])) {
      i++;
    }

    return new NonFiniteException(0, firstIndex + i, w[i]);
  }

  /** The blocks of [rows, cols], once both outputs are seen to have room for them. */
  static int blocks(long rows, long cols, ByteBuffer packed, ByteBuffer scales) {
    int blocks = blocks(rows, cols);
    checkRoom("packed", packed.remaining(), (long) blocks * PACKED_BLOCK);
    checkRoom("scales", scales.remaining(), blocks);
    return blocks;
  }

  private static int blocks(long rows, long cols) {
    if (rows < 0 || cols < 0 || cols % BLOCK != 0) {
      throw new IllegalArgumentException(
          "Invalid shape: [" + rows + ", " + cols + "], columns must be a multiple of " + BLOCK
              + " and neither side negative");
    }

    return Math.toIntExact(Math.multiplyExact(rows, cols) / BLOCK);
  }

  private static void checkRoom(String buffer, int remaining, long needed) {
    if (remaining < needed) {
      throw new IllegalArgumentException(
          "Invalid buffer: " + buffer + " has room for " + remaining + " elements, needs " + needed);
    }
  }
}
