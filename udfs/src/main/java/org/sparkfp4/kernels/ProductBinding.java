package org.sparkfp4.kernels;

import java.nio.DoubleBuffer;

/**
 * The C interface of products as Java sees it; {@code sparkfp4_products.h} documents it. Only for use once {@link
 * NativeLibrary} has loaded.
 */
final class ProductBinding {
  /** What tells the place of a matrix: offset, rows, columns, row stride, column stride. */
  static final int NUMBERS = 5;

  private ProductBinding() {}

  /**
   * Nothing checks the places against the buffers, which are direct.
   *
   * @param places {@value #NUMBERS} numbers of each matrix
   * @return a status of {@link NativeBinding}
   */
  static native int add(int tier, DoubleBuffer a, DoubleBuffer b, DoubleBuffer c, long[] places);
}
