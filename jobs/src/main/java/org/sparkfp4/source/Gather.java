package org.sparkfp4.source;

import java.io.Serializable;
import java.util.List;
import org.apache.spark.unsafe.Platform;

/**
 * Elements that do not follow one another: what lies between is not wanted, or rows and columns are swapped. Three
 * dimensions at most.
 *
 * @param shape elements in each dimension, outermost first
 * @param strides bytes from an element to the next in each dimension
 * @param elementBytes bytes of an element: 1, 2, 4 or 8
 */
record Gather(List<Long> shape, List<Long> strides, int elementBytes) implements Serializable {
  /** Elements a side of a tile: two tiles of the widest elements stay in the first-level cache. */
  private static final long TILE = 32;

  Gather {
    shape = List.copyOf(shape);
    strides = List.copyOf(strides);
    if (shape.size() != strides.size() || shape.size() < 2 || shape.size() > 3) {
      throw new IllegalArgumentException("Invalid strides: " + strides + " of shape " + shape
          + " (must be as many, two or three)");
    }
  }

  /** Bytes from the first element to the end of the last. */
  long span() {
    long span = elementBytes;
    for (int i = 0; i < shape.size(); i++) {
      span += (shape.get(i) - 1) * strides.get(i);
    }

    return span;
  }

  /**
   * Copies the elements so that they follow one another.
   *
   * @param source address of the first element
   * @param target address of as many bytes as there are elements
   */
  void copy(long source, long target) {
    int last = shape.size() - 1;
    long rows = shape.get(last - 1);
    long cols = shape.get(last);
    long matrices = last == 2 ? shape.get(0) : 1;
    long step = last == 2 ? strides.get(0) : 0;
    for (long matrix = 0; matrix < matrices; matrix++) {
      copyMatrix(
          source + matrix * step, target + matrix * rows * cols * elementBytes, rows, cols, strides.get(last - 1),
          strides.get(last));
    }
  }

  private void copyMatrix(long source, long target, long rows, long cols, long rowStride, long colStride) {
    if (colStride == elementBytes) {
      for (long row = 0; row < rows; row++) {
        Platform.copyMemory(
            null, source + row * rowStride, null, target + row * cols * elementBytes, cols * elementBytes);
      }

      return;
    }

    for (long row = 0; row < rows; row += TILE) {
      for (long col = 0; col < cols; col += TILE) {
        copyTile(
            source + row * rowStride + col * colStride, target + (row * cols + col) * elementBytes,
            Math.min(TILE, rows - row), Math.min(TILE, cols - col), rowStride, colStride, cols * elementBytes);
      }
    }
  }

  private void copyTile(
      long source, long target, long rows, long cols, long rowStride, long colStride, long targetStride) {
    for (long row = 0; row < rows; row++) {
      long from = source + row * rowStride;
      long to = target + row * targetStride;
      switch (elementBytes) {
        case 1 -> {
          for (long col = 0; col < cols; col++) {
            Platform.putByte(null, to + col, Platform.getByte(null, from + col * colStride));
          }
        }
        case 2 -> {
          for (long col = 0; col < cols; col++) {
            Platform.putShort(null, to + 2 * col, Platform.getShort(null, from + col * colStride));
          }
        }
        case 4 -> {
          for (long col = 0; col < cols; col++) {
            Platform.putInt(null, to + 4 * col, Platform.getInt(null, from + col * colStride));
          }
        }
        default -> {
          for (long col = 0; col < cols; col++) {
            Platform.putLong(null, to + 8 * col, Platform.getLong(null, from + col * colStride));
          }
        }
      }
    }
  }
}
