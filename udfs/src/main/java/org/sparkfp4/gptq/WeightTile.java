package org.sparkfp4.gptq;

import org.sparkfp4.formats.E2M1;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.kernels.MatrixMemory;
import org.sparkfp4.kernels.MatrixView;

/**
 * Some rows of a weight and their codes, column after column: what is said of an element is at {@code column * rows +
 * row}.
 */
final class WeightTile {
  private final int rows;
  private final int cols;
  private final float[] weights;
  private final float[] factors;
  private final byte[] codes;
  private final MatrixView errors;

  /** @param memory of its errors */
  WeightTile(int rows, int cols, MatrixMemory memory) {
    this(rows, cols, new float[rows * cols], new float[rows * (cols / Nvfp4.BLOCK)], memory);
  }

  private WeightTile(int rows, int cols, float[] weights, float[] factors, MatrixMemory memory) {
    this.rows = rows;
    this.cols = cols;
    this.weights = weights;
    this.factors = factors;
    this.codes = new byte[rows * cols];
    this.errors = memory.matrix(cols, rows);
  }

  /** The same weights and scales; codes of its own, none set. */
  WeightTile withoutCodes(MatrixMemory memory) {
    return new WeightTile(rows, cols, weights, factors, memory);
  }

  int rows() {
    return rows;
  }

  int cols() {
    return cols;
  }

  void setWeight(int row, int col, float weight) {
    weights[col * rows + row] = weight;
  }

  /** Sets the d of {@code w = e2m1(code) * d} of a block of 16 columns. */
  void setFactor(int row, int block, float factor) {
    factors[block * rows + row] = factor;
  }

  int code(int row, int col) {
    return codes[col * rows + row];
  }

  /** Sets an element's code, and so its error. */
  void setCode(int row, int col, int code) {
    int at = col * rows + row;
    codes[at] = (byte) code;
    errors.set(col, row, (double) weights[at] - E2M1.decode(code) * factors[col / Nvfp4.BLOCK * rows + row]);
  }

  /** Rounds an element, moved by {@code shift}, to the nearest value under its block's scale. */
  void round(int row, int col, double shift) {
    float d = factors[col / Nvfp4.BLOCK * rows + row];
    setCode(row, col, d == 0 ? 0 : E2M1.encode((float) (weights[col * rows + row] + shift) / d));
  }

  /** The errors so far, w less what its code stands for: [K, rows]. */
  MatrixView errors() {
    return errors;
  }
}
