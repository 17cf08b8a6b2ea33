package org.sparkfp4.gptq;

import java.nio.FloatBuffer;
import java.util.Random;

/** Inputs of a layer, [tokens, K], and the means of their products. */
final class Inputs {
  private final double[][] values;

  private Inputs(double[][] values) {
    this.values = values;
  }

  /**
   * Normal inputs, mixtures of independent ones whose variances fall off as {@code (1 + i)^-exponent}.
   *
   * @param scales of the columns
   */
  static Inputs correlated(int tokens, int cols, double exponent, double[] scales, Random random) {
    double[][] mixing = new double[cols][cols];
    for (double[] source : mixing) {
      for (int i = 0; i < cols; i++) {
        source[i] = random.nextGaussian() / Math.sqrt(cols);
      }
    }

    double[][] values = new double[tokens][cols];
    for (double[] token : values) {
      for (int source = 0; source < cols; source++) {
        double x = random.nextGaussian() * StrictMath.pow(1 + source, -exponent / 2);
        for (int i = 0; i < cols; i++) {
          token[i] += x * mixing[source][i];
        }
      }

      for (int i = 0; i < cols; i++) {
        token[i] *= scales[i];
      }
    }

    return new Inputs(values);
  }

  double[][] values() {
    return values;
  }

  /** The mean of x xᵀ over some of the tokens. */
  FloatBuffer hessian(int from, int to) {
    int cols = values[0].length;
    double[] sums = new double[cols * cols];
    for (int token = from; token < to; token++) {
      double[] x = values[token];
      for (int i = 0; i < cols; i++) {
        for (int j = 0; j < cols; j++) {
          sums[i * cols + j] += x[i] * x[j];
        }
      }
    }

    FloatBuffer hessian = FloatBuffer.allocate(cols * cols);
    for (int i = 0; i < sums.length; i++) {
      hessian.put(i, (float) (sums[i] / (to - from)));
    }

    return hessian;
  }
}
