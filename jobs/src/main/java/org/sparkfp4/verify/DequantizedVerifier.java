package org.sparkfp4.verify;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.BFloat16;

/** Compares BF16 tensors with what their sources' codes and scales stand for, bit by bit. */
final class DequantizedVerifier {
  private final TensorReader source;
  private final TensorReader quantized;
  private final Differences differences;

  DequantizedVerifier(TensorReader source, TensorReader quantized, Differences differences) {
    this.source = source;
    this.quantized = quantized;
    this.differences = differences;
  }

  void verify(DequantizedTensor tensor) throws IOException {
    SourceRows rows = new SourceRows(source, tensor.source());
    LocatedTensor copy = tensor.copy();
    byte[] bytes = new byte[rows.rowsPerSlab() * rows.cols() * Short.BYTES];
    for (long row = 0; row < rows.rows(); row += rows.rowsPerSlab()) {
      int count = rows.rowsFrom(row) * rows.cols();
      ByteBuffer products = rows.read(row);
      ByteBuffer actual = quantized.read(copy, row * rows.cols() * Short.BYTES, count * Short.BYTES, bytes);
      for (int i = 0; i < count; i++) {
        short expected = BFloat16.fromFloat(products.getFloat(i * Float.BYTES));
        short found = actual.getShort(i * Short.BYTES);
        if (expected != found) {
          long element = row * rows.cols() + i;
          differences.add(String.format(
              "Tensor %s (%s) is not the source's %s (%s) in BF16: [%d, %d] is %s, there %s",
              copy.name(), copy.file(), tensor.source().name(), tensor.source().weight().file(),
              element / rows.cols(), element % rows.cols(), BFloat16.toFloat(found), BFloat16.toFloat(expected)));
          return;
        }
      }
    }
  }
}
