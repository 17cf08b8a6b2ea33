package org.sparkfp4.kernels;

/**
 * One tier of the products of matrices in double. Thread-safe and stateless; every tier gives the same bits, but for those of a NaN: each element
 * is the sum of its products in their order, and each product and each sum is rounded.
 */
public interface ProductKernel {
  /** {@code java} (the reference), {@code scalar}, {@code avx2} or {@code avx512}. */
  String tier();

  /**
   * Adds a product: {@code c[i][j] = ((c[i][j] + a[i][0] b[0][j]) + a[i][1] b[1][j]) + ...}.
   *
   * @param a [rows of c, depth]
   * @param b [depth, columns of c], row by row
   * @param c row by row; no element of it is one of a or b
   * @throws IllegalArgumentException if shapes do not go together, or b or c is not row by row
   */
  void add(MatrixView a, MatrixView b, MatrixView c);

  /** What {@link #add} refuses. */
  static void check(MatrixView a, MatrixView b, MatrixView c) {
    if (a.rows() != c.rows() || a.cols() != b.rows() || b.cols() != c.cols()) {
      throw new IllegalArgumentException("Invalid product: [" + a.rows() + ", " + a.cols() + "] by [" + b.rows() + ", "
          + b.cols() + "] into [" + c.rows() + ", " + c.cols() + "]");
    }

    for (MatrixView matrix : new MatrixView[] {b, c}) {
      if (matrix.colStride() != 1 || matrix.rowStride() < matrix.cols()) {
        throw new IllegalArgumentException("Invalid product: strides " + matrix.rowStride() + " and "
            + matrix.colStride() + " of [" + matrix.rows() + ", " + matrix.cols() + "], must be row by row");
      }
    }
  }
}
