package org.sparkfp4.kernels;

/**
 * A matrix of doubles in an array, or a part of one: element (i, j) is {@code values[offset + i * rowStride + j *
 * colStride]}.
 */
public record MatrixView(double[] values, int offset, int rows, int cols, int rowStride, int colStride) {
  /** @throws IllegalArgumentException if an element would lie outside the array */
  public MatrixView {
    boolean isEmpty = rows == 0 || cols == 0;
    long last = offset + (rows - 1L) * rowStride + (cols - 1L) * colStride;
    if (rows < 0 || cols < 0 || rowStride < 0 || colStride < 0 || offset < 0
        || offset > values.length || !isEmpty && last >= values.length) {
      throw new IllegalArgumentException("Invalid matrix: [" + rows + ", " + cols + "] from " + offset + " on, strides "
          + rowStride + " and " + colStride + ", in " + values.length + " values");
    }
  }

  /** A whole matrix, row by row. */
  public static MatrixView of(double[] values, int rows, int cols) {
    return new MatrixView(values, 0, rows, cols, cols, 1);
  }

  public double at(int row, int col) {
    return values[offset + row * rowStride + col * colStride];
  }

  /** Some rows and columns of it, or none, behind the last. */
  public MatrixView part(int firstRow, int firstCol, int partRows, int partCols) {
    // what is behind the last has no place in the array
    int begin = partRows == 0 || partCols == 0 ? offset : offset + firstRow * rowStride + firstCol * colStride;
    return new MatrixView(values, begin, partRows, partCols, rowStride, colStride);
  }

  /** The same elements with rows and columns exchanged. */
  public MatrixView transposed() {
    return new MatrixView(values, offset, cols, rows, colStride, rowStride);
  }
}
