package org.sparkfp4.kernels;

import java.nio.DoubleBuffer;

/**
 * A matrix of doubles in native memory, or a part of one: element (i, j) is {@code values.get(offset + i * rowStride + j *
 * colStride)}. The memory is a {@link MatrixMemory}'s and must not be closed before.
 *
 * @param values direct, in the byte order of the machine, its position at 0
 */
public record MatrixView(DoubleBuffer values, int offset, int rows, int cols, int rowStride, int colStride) {
  /** @throws IllegalArgumentException if an element would lie outside the memory, or that is none of a machine's */
  public MatrixView {
    boolean isEmpty = rows == 0 || cols == 0;
    long last = offset + (rows - 1L) * rowStride + (cols - 1L) * colStride;
    if (rows < 0 || cols < 0 || rowStride < 0 || colStride < 0 || offset < 0
        || offset > values.capacity() || !isEmpty && last >= values.capacity()) {
      throw new IllegalArgumentException("Invalid matrix: [" + rows + ", " + cols + "] from " + offset + " on, strides "
          + rowStride + " and " + colStride + ", in " + values.capacity() + " values");
    }
  }

  public double at(int row, int col) {
    return values.get(offset + row * rowStride + col * colStride);
  }

  public void set(int row, int col, double value) {
    values.put(offset + row * rowStride + col * colStride, value);
  }

  /** Copies a row's first elements, of a matrix that is row by row. */
  public void getRow(int row, double[] into, int count) {
    values.get(offset + row * rowStride, into, 0, count);
  }

  /** Sets a row's first elements, of a matrix that is row by row. */
  public void setRow(int row, double[] from, int first, int count) {
    values.put(offset + row * rowStride, from, first, count);
  }

  /** Sets all elements to 0, of a matrix that is row by row. */
  public void clear() {
    double[] zeros = new double[cols];
    for (int row = 0; row < rows; row++) {
      setRow(row, zeros, 0, cols);
    }
  }

  /**
   * Some rows and columns of it, or none.
   *
   * @throws IllegalArgumentException if it does not have them
   */
  public MatrixView part(int firstRow, int firstCol, int partRows, int partCols) {
    if (firstRow < 0 || firstCol < 0 || partRows > rows - firstRow || partCols > cols - firstCol) {
      throw new IllegalArgumentException("Invalid part: [" + partRows + ", " + partCols + "] from " + firstRow + ", "
          + firstCol + " on, of [" + rows + ", " + cols + "]");
    }

    // what is behind the last has no place in the memory
    int begin = partRows == 0 || partCols == 0 ? offset : offset + firstRow * rowStride + firstCol * colStride;
    return new MatrixView(values, begin, partRows, partCols, rowStride, colStride);
  }

  /** The same elements with rows and columns exchanged. */
  public MatrixView transposed() {
    return new MatrixView(values, offset, cols, rows, colStride, rowStride);
  }
}
