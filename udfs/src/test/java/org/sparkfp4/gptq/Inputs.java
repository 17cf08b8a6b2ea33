package org.sparkfp4.gptq;

import java.nio.FloatBuffer;
import java.util.Random;
import org.ejml.data.DMatrixRMaj;
import org.ejml.dense.row.decomposition.qr.QRDecompositionHouseholderColumn_DDRM;
import org.ejml.dense.row.mult.MatrixMatrixMult_DDRM;

/** Inputs of a layer, [tokens, K], and the means of their products. */
public final class Inputs {
  private final DMatrixRMaj values;

  private Inputs(DMatrixRMaj values) {
    this.values = values;
  }

  /**
   * Normal inputs: independent ones whose variances fall off as {@code (1 + i)^-exponent}, rotated at random, and each
   * column scaled.
   *
   * @param scales what the columns' standard deviations become
   */
  public static Inputs rotated(int tokens, double exponent, double[] scales, Random random) {
    int cols = scales.length;
    DMatrixRMaj sources = normal(tokens, cols, random);
    for (int at = 0; at < tokens * cols; at++) {
      sources.data[at] *= StrictMath.pow(1 + at % cols, -exponent / 2);
    }

    DMatrixRMaj values = sources;
    if (exponent != 0) {
      QRDecompositionHouseholderColumn_DDRM qr = new QRDecompositionHouseholderColumn_DDRM();
      qr.decompose(normal(cols, cols, random));
      values = new DMatrixRMaj(tokens, cols);
      MatrixMatrixMult_DDRM.mult_reorder(sources, qr.getQ(null, false), values);
    }

    for (int col = 0; col < cols; col++) {
      double square = 0;
      for (int token = 0; token < tokens; token++) {
        square += values.get(token, col) * values.get(token, col);
      }

      double factor = scales[col] / Math.sqrt(square / tokens);
      for (int token = 0; token < tokens; token++) {
        values.set(token, col, values.get(token, col) * factor);
      }
    }

    return new Inputs(values);
  }

  /** Scales whose logarithms are normal. */
  public static double[] scales(int cols, double deviation, Random random) {
    double[] scales = new double[cols];
    for (int i = 0; i < cols; i++) {
      scales[i] = StrictMath.exp(deviation * random.nextGaussian());
    }

    return scales;
  }

  private static DMatrixRMaj normal(int rows, int cols, Random random) {
    DMatrixRMaj values = new DMatrixRMaj(rows, cols);
    for (int at = 0; at < rows * cols; at++) {
      values.data[at] = random.nextGaussian();
    }

    return values;
  }

  double value(int token, int col) {
    return values.get(token, col);
  }

  /** The mean of x xᵀ over some of the tokens. */
  public FloatBuffer hessian(int from, int to) {
    int cols = values.numCols;
    DMatrixRMaj some = new DMatrixRMaj(to - from, cols);
    System.arraycopy(values.data, from * cols, some.data, 0, some.getNumElements());
    DMatrixRMaj sums = new DMatrixRMaj(cols, cols);
    MatrixMatrixMult_DDRM.multTransA_reorder(some, some, sums);
    FloatBuffer hessian = FloatBuffer.allocate(cols * cols);
    for (int i = 0; i < cols * cols; i++) {
      hessian.put(i, (float) (sums.data[i] / (to - from)));
    }

    return hessian;
  }
}
