package org.sparkfp4.sink;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.sparkfp4.output.ShardOutput;

/** Writes bytes of rows with the rows innermost, matrix by matrix: {@code [n, rows, cols]} as {@code [n, cols, rows]}. */
final class StackedBytes {
  /** Columns that are gathered at once: as many streams of bytes are written. */
  private static final int BAND = 64;

  private final int rows;
  private final int cols;
  private final byte[] band;

  /**
   * @param rows rows of a matrix
   * @param cols bytes of a row
   */
  StackedBytes(long rows, long cols) {
    this.rows = Math.toIntExact(rows);
    this.cols = Math.toIntExact(cols);
    this.band = new byte[Math.multiplyExact(this.rows, Math.min(BAND, this.cols))];
  }

  /** Writes whole matrices, all that is left of {@code bytes}. */
  void write(ByteBuffer bytes, ShardOutput out) throws IOException {
    int matrix = Math.multiplyExact(rows, cols);
    for (int begin = bytes.position(); begin < bytes.limit(); begin += matrix) {
      for (int col = 0; col < cols; col += BAND) {
        writeBand(bytes, begin, col, Math.min(BAND, cols - col), out);
      }
    }
  }

  private void writeBand(ByteBuffer bytes, int begin, int first, int count, ShardOutput out) throws IOException {
    for (int row = 0; row < rows; row++) {
      int from = begin + row * cols + first;
      for (int col = 0; col < count; col++) {
        band[col * rows + row] = bytes.get(from + col);
      }
    }

    out.write(ByteBuffer.wrap(band, 0, count * rows));
  }
}
