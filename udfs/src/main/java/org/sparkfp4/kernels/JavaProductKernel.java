package org.sparkfp4.kernels;

/** The reference of {@link ProductKernel}, and what serves without the native library. */
final class JavaProductKernel implements ProductKernel {
  /** Rows of b that are worked on at once: few, for the compiler's vectors need arrays, and these are copies. */
  private static final int DEPTH = 128;

  @Override
  public String tier() {
    return "java";
  }

  @Override
  public void add(MatrixView a, MatrixView b, MatrixView c) {
    ProductKernel.check(a, b, c);
    double[][] right = new double[Math.min(DEPTH, b.rows())][b.cols()];
    double[] sums = new double[c.cols()];
    for (int first = 0; first < b.rows(); first += DEPTH) {
      int depth = Math.min(DEPTH, b.rows() - first);
      for (int k = 0; k < depth; k++) {
        b.getRow(first + k, right[k], b.cols());
      }

      for (int i = 0; i < c.rows(); i++) {
        c.getRow(i, sums, c.cols());
        for (int k = 0; k < depth; k++) {
          add(a.at(i, first + k), right[k], sums);
        }

        c.setRow(i, sums, 0, c.cols());
      }
    }
  }

  private static void add(double left, double[] right, double[] sums) {
    for (int j = 0; j < sums.length; j++) {
      sums[j] += left * right[j];
    }
  }
}
