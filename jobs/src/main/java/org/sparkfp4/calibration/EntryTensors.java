package org.sparkfp4.calibration;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.sparkfp4.output.StagedFile;

/** Writes the tensors of an entry, {@link EntryLayout}. */
final class EntryTensors {
  private final EntrySums sums;
  private final EntryLayout layout;

  EntryTensors(EntrySums sums, HessianKind hessian) {
    this.sums = sums;
    this.layout = new EntryLayout(sums.entry(), hessian, sums.tokens() > 0);
  }

  EntryLayout layout() {
    return layout;
  }

  void writeWide(StagedFile file) throws IOException {
    ByteBuffer bytes = buffer((2L + BlockAmaxHistogram.BINS + cols()) * Long.BYTES);
    bytes.putLong(sums.tokens());
    if (layout.hasFull()) {
      bytes.putLong(sums.heldOutTokens());
    }

    for (long count : sums.histogram()) {
      bytes.putLong(count);
    }

    for (double square : squares()) {
      bytes.putDouble(square);
    }

    file.write(bytes.flip());
  }

  void writeNarrow(StagedFile file) throws IOException {
    ByteBuffer bytes = buffer((1L + cols()) * Float.BYTES);
    bytes.putFloat(sums.amax());
    means(squares(), sums.tokens(), bytes);
    file.write(bytes.flip());
    if (layout.hasLocal()) {
      for (BandSums band : sums.bands()) {
        ByteBuffer local = buffer((long) band.local().length * Float.BYTES);
        means(band.local(), sums.tokens(), local);
        file.write(local.flip());
      }
    }

    if (layout.hasFull()) {
      writeProducts(file, false, sums.tokens() - sums.heldOutTokens());
      writeProducts(file, true, sums.heldOutTokens());
    }
  }

  private void writeProducts(StagedFile file, boolean heldOut, long tokens) throws IOException {
    double[] row = new double[cols()];
    ByteBuffer bytes = buffer((long) cols() * Float.BYTES);
    for (int i = 0; i < cols(); i++) {
      sums.productRow(heldOut, i, row);
      means(row, tokens, bytes.clear());
      file.write(bytes.flip());
    }
  }

  private static void means(double[] sums, long tokens, ByteBuffer into) {
    for (double sum : sums) {
      into.putFloat(tokens == 0 ? 0 : (float) (sum / tokens));
    }
  }

  private double[] squares() {
    double[] squares = new double[cols()];
    for (BandSums band : sums.bands()) {
      System.arraycopy(band.squares(), 0, squares, band.first(), band.width());
    }

    return squares;
  }

  private int cols() {
    return sums.entry().cols();
  }

  private static ByteBuffer buffer(long bytes) {
    return ByteBuffer.allocate(Math.toIntExact(bytes)).order(ByteOrder.LITTLE_ENDIAN);
  }
}
