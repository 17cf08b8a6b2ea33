package org.sparkfp4.verify;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.fs.FSDataInputStream;
import org.sparkfp4.checkpoint.LocatedTensor;

/** Reads rows of a tensor whose elements are apart in the file, by the definition of its strides. */
final class StridedRows {
  private final LocatedTensor tensor;
  private final FSDataInputStream file;
  private final int cols;
  private final int elementBytes;
  private final long rowsOfMatrix;
  private final long rowStride;
  private final long colStride;

  StridedRows(LocatedTensor tensor, FSDataInputStream file) {
    List<Long> strides = tensor.strides();
    this.tensor = tensor;
    this.file = file;
    this.cols = Math.toIntExact(tensor.cols());
    this.elementBytes = Math.toIntExact(tensor.length() / (tensor.rows() * tensor.cols()));
    this.rowsOfMatrix = tensor.shape().get(tensor.shape().size() - 2);
    this.rowStride = strides.get(strides.size() - 2);
    this.colStride = strides.get(strides.size() - 1);
  }

  /** Fills the start of {@code into} with whole rows, {@code length} bytes that begin {@code from} bytes in. */
  void read(long from, int length, byte[] into) throws IOException {
    int rowBytes = cols * elementBytes;
    long first = from / rowBytes;
    int count = length / rowBytes;
    for (int done = 0; done < count; ) {
      long row = first + done;
      int rows = (int) Math.min(count - done, rowsOfMatrix - row % rowsOfMatrix);
      long matrix = tensor.shape().size() == 3 ? row / rowsOfMatrix * tensor.strides().get(0) : 0;
      read(tensor.offset() + matrix + row % rowsOfMatrix * rowStride, rows, into, done * rowBytes);
      done += rows;
    }
  }

  /** Rows of one matrix, row by row or column by column as the file has them. */
  private void read(long place, int rows, byte[] into, int target) throws IOException {
    if (colStride == elementBytes) {
      for (int row = 0; row < rows; row++) {
        file.readFully(place + row * rowStride, into, target + row * cols * elementBytes, cols * elementBytes);
      }

      return;
    }

    byte[] column = new byte[Math.toIntExact((rows - 1) * rowStride) + elementBytes];
    for (int col = 0; col < cols; col++) {
      file.readFully(place + col * colStride, column, 0, column.length);
      for (int row = 0; row < rows; row++) {
        System.arraycopy(
            column, (int) (row * rowStride), into, target + (row * cols + col) * elementBytes, elementBytes);
      }
    }
  }
}
