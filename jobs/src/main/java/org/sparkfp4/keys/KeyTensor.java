package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.safetensors.DType;

/**
 * A tensor of the input.
 *
 * @param name its name
 * @param file number of its file
 * @param path that file, for messages
 * @param dtype its element type
 * @param shape its dimensions
 * @param offset its first byte in the file
 * @param length its bytes
 */
record KeyTensor(String name, int file, String path, DType dtype, List<Long> shape, long offset, long length)
    implements Serializable {
  /** Rows of a matrix. */
  long rows() {
    return shape.get(0);
  }

  int cols() {
    return Math.toIntExact(shape.get(1));
  }

  /**
   * The type of floating-point elements.
   *
   * @throws InvalidKeysException naming the tensor
   */
  ElementType elements() {
    try {
      return ElementType.of(dtype.name());
    } catch (IllegalArgumentException e) {
      throw invalid("it is of " + dtype + ", must be BF16, F16 or F32");
    }
  }

  /** Refuses a tensor that is no matrix, or one of another number of columns or rows; -1 for any. */
  void requireMatrix(long rows, long cols) {
    if (shape.size() != 2 || rows >= 0 && shape.get(0) != rows || cols >= 0 && shape.get(1) != cols) {
      throw invalid("its shape is " + shape + ", must be [" + (rows < 0 ? "tokens" : rows) + ", "
          + (cols < 0 ? "values" : cols) + "]");
    }
  }

  InvalidKeysException invalid(String problem) {
    return new InvalidKeysException("Invalid tensor " + name + " in file " + path + ": " + problem);
  }
}
