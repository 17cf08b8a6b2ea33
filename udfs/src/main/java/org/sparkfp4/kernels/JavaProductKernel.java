package org.sparkfp4.kernels;

/** The reference of {@link ProductKernel}, and what serves without the native library. */
final class JavaProductKernel implements ProductKernel {
  @Override
  public String tier() {
    return "java";
  }

  @Override
  public void add(MatrixView a, MatrixView b, MatrixView c) {
    ProductKernel.check(a, b, c);
    double[] right = b.values();
    double[] sums = c.values();
    for (int i = 0; i < c.rows(); i++) {
      int sum = c.offset() + i * c.rowStride();
      for (int k = 0; k < b.rows(); k++) {
        double left = a.at(i, k);
        int factor = b.offset() + k * b.rowStride();
        for (int j = 0; j < c.cols(); j++) {
          sums[sum + j] += left * right[factor + j];
        }
      }
    }
  }
}
