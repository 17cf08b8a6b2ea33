package org.sparkfp4.formats;

/**
 * LayerNorm of a row in binary32, one rounding an operation: mean = sum(x) / D, d = x - mean, var = sum(d * d) / D,
 * r = 1 / sqrt(var + eps), y = (d * r) * weight + bias, with sums as {@link LaneSum} has them.
 *
 * @param weight [D]
 * @param bias [D]
 * @param eps added to the variance; positive
 */
public record LayerNorm(float[] weight, float[] bias, float eps) {
  public LayerNorm {
    if (weight.length != bias.length) {
      throw new IllegalArgumentException(
          "Invalid norm: " + weight.length + " weights and " + bias.length + " biases, must be as many");
    }

    RmsNorm.requireEps(eps);
    RmsNorm.requireFinite("weight", weight);
    RmsNorm.requireFinite("bias", bias);
  }

  /** Normalises a row in place. */
  void apply(float[] x) {
    float mean = LaneSum.of(x) / x.length;
    float[] squares = new float[x.length];
    for (int i = 0; i < x.length; i++) {
      x[i] -= mean;
      squares[i] = x[i] * x[i];
    }

    float r = RmsNorm.inverseRoot(LaneSum.of(squares) / x.length + eps);
    for (int i = 0; i < x.length; i++) {
      x[i] = x[i] * r * weight[i] + bias[i];
    }
  }
}
