package org.sparkfp4.kernels;

/**
 * The C interface of products as Java sees it; {@code sparkfp4_products.h} documents it. Only for use once {@link
 * NativeLibrary} has loaded.
 */
final class ProductBinding {
  /** What tells the place of a matrix: offset, rows, columns, row stride, column stride. */
  static final int NUMBERS = 5;

  /** Rows of c that a kernel works on at once. */
  static final int TILE_ROWS = 4;

  private ProductBinding() {}

  /**
   * Holds the arrays while it runs. Nothing checks the places against the arrays.
   *
   * @param places {@value #NUMBERS} numbers of each matrix
   * @return a status of {@link NativeBinding}
   */
  static native int add(int tier, double[] a, double[] b, double[] c, long[] places);
}
