package org.sparkfp4.safetensors;

import java.util.List;

/** How many bytes a tensor takes. */
final class TensorSize {
  private TensorSize() {}

  /**
   * Bytes of a tensor.
   *
   * @throws ArithmeticException when the size overflows 64 bits or is no whole number of bytes
   */
  static long bytes(DType dtype, List<Long> shape) {
    long elements = 1;
    for (long dimension : shape) {
      elements = Math.multiplyExact(elements, dimension);
    }

    return dtype.bytes(elements);
  }
}
