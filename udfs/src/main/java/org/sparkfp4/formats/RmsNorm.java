package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * RMSNorm of a row in binary32, one rounding an operation: r = 1 / sqrt(sum(x * x) / N + eps), y = (x * r) * weight,
 * with the sum as {@link LaneSum} has it.
 *
 * @param weight [N], N a multiple of 32
 * @param eps added to the mean square; positive
 */
public record RmsNorm(float[] weight, float eps) {
  public RmsNorm {
    Mxfp4Codec.requireColumns(weight.length);
    requireEps(eps);
    requireFinite("weight", weight);
  }

  /**
   * Normalises rows and stores them as the type that they came in, rounded to nearest even.
   *
   * @param in little-endian [rows, N], from position to limit
   * @param out takes [rows, N] of the same type from its position on
   * @throws NonFiniteRowException naming the first value that is not finite, before the norm or after it
   */
  public void apply(ElementType type, ByteBuffer in, long rows, ByteBuffer out) {
    int rowBytes = weight.length * type.bytes();
    ByteBuffer source = in.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer target = out.slice().order(ByteOrder.LITTLE_ENDIAN);
    Mxfp4Codec.requireBytes("rows", source, rows * rowBytes);
    Mxfp4Codec.requireBytes("result", target, rows * rowBytes);
    float[] x = new float[weight.length];
    for (int row = 0; row < rows; row++) {
      type.load(source, row * rowBytes, x);
      NonFiniteRowException.check(x, row);
      apply(x);
      for (int i = 0; i < x.length; i++) {
        type.store(x[i], target, row * rowBytes + i * type.bytes());
      }

      type.load(target, row * rowBytes, x);
      requireNormalised(x, row);
    }
  }

  /** Normalises a row in place. */
  void apply(float[] x) {
    float[] squares = new float[x.length];
    for (int i = 0; i < x.length; i++) {
      squares[i] = x[i] * x[i];
    }

    float r = inverseRoot(LaneSum.of(squares) / x.length + eps);
    for (int i = 0; i < x.length; i++) {
      x[i] = x[i] * r * weight[i];
    }
  }

  static void requireNormalised(float[] x, long row) {
    for (float value : x) {
      if (!Float.isFinite(value)) {
        throw NonFiniteRowException.normalised(x, row);
      }
    }
  }

  /** The root of the widened number, rounded, is the correctly rounded root of the number. */
  static float inverseRoot(float x) {
    return 1 / (float) Math.sqrt(x);
  }

  static void requireEps(float eps) {
    if (!(eps > 0) || Float.isInfinite(eps)) {
      throw new IllegalArgumentException("Invalid eps: " + eps + ", must be positive and finite");
    }
  }

  static void requireFinite(String what, float[] values) {
    for (int i = 0; i < values.length; i++) {
      if (!Float.isFinite(values[i])) {
        throw new IllegalArgumentException(
            "Invalid norm: its " + what + " is " + values[i] + " at element " + i + ", must be finite");
      }
    }
  }
}
