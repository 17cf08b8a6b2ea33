package org.sparkfp4.formats;

/**
 * FP4 E2M1 (OCP Microscaling Formats 1.0, 5.3.3): a code of 4 bits is {@code sign << 3 | index}, and index 0 to 7 means
 * 0, 0.5, 1, 1.5, 2, 3, 4, 6. There is no infinity and no NaN.
 */
public final class E2M1 {
  /** The largest value. */
  public static final float MAX = 6f;

  private static final int MAX_MAGNITUDE = Float.floatToRawIntBits(MAX);
  private static final float[] VALUES = {
    0f, 0.5f, 1f, 1.5f, 2f, 3f, 4f, 6f, -0f, -0.5f, -1f, -1.5f, -2f, -3f, -4f, -6f
  };

  private E2M1() {}

  /**
   * The code nearest to {@code x}, ties to the even index; beyond 6 saturates.
   *
   * <p>The sign is {@code x < 0}, not the sign bit, as the checkpoint producers have it: -0.0 gives 0, and a negative
   * number that rounds to zero gives 8. NaN gives 7; {@link Nvfp4} never passes one.
   */
  public static int encode(float x) {
    return (x < 0 ? 8 : 0) | index(x);
  }

  /** As {@link #encode}, but with the sign bit of {@code x}: -0.0 gives 8, as the writers of MXFP4 caches have it. */
  public static int encodeWithSignBit(float x) {
    return Float.floatToRawIntBits(x) >>> 28 & 8 | index(x);
  }

  private static int index(float x) {
    return Minifloat.round(Math.min(Minifloat.magnitude(x), MAX_MAGNITUDE), 1, 0);
  }

  /** The value of a code; only its low 4 bits count. Code 8 is -0.0. */
  public static float decode(int code) {
    return VALUES[code & 0xF];
  }
}
