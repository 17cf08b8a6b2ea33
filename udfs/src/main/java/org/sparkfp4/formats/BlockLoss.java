package org.sparkfp4.formats;

/** The loss of a block under a scale, as {@link ScaleSearch} defines it. Not thread-safe: it has scratch arrays. */
final class BlockLoss {
  private final float[] errors = new float[Nvfp4.BLOCK];
  private final float[] terms = new float[Nvfp4.BLOCK];
  private final float[] outer = new float[Nvfp4.BLOCK];

  /** The sum of the squared errors. */
  float of(float[] w, float d) {
    quantize(w, d);
    for (int i = 0; i < Nvfp4.BLOCK; i++) {
      terms[i] = errors[i] * errors[i];
    }

    return ErrorSums.sum(terms);
  }

  /** The weighed sum; {@code h} has the values of the block. */
  float weighted(float[] w, float d, Weighting weighting, float[] h) {
    quantize(w, d);
    for (int i = 0; i < Nvfp4.BLOCK; i++) {
      outer[i] = weighting == Weighting.DIAGONAL ? h[i] * (errors[i] * errors[i]) : errors[i] * product(h, i);
    }

    return ErrorSums.sum(outer);
  }

  /** Row i of the Hessian times the errors. */
  private float product(float[] hessian, int i) {
    for (int j = 0; j < Nvfp4.BLOCK; j++) {
      terms[j] = hessian[i * Nvfp4.BLOCK + j] * errors[j];
    }

    return ErrorSums.sum(terms);
  }

  /** Signed errors; their squares are those of the magnitudes' errors. */
  private void quantize(float[] w, float d) {
    for (int i = 0; i < Nvfp4.BLOCK; i++) {
      errors[i] = w[i] - E2M1.decode(E2M1.encode(w[i] / d)) * d;
    }
  }
}
