package org.sparkfp4.verify;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.SourceScheme;
import org.sparkfp4.formats.WeightScheme;

/** A weight of the source by slabs of rows; codes become the fp32 products that they stand for. */
final class SourceRows {
  /** Elements of a slab; a longer row, or block of a scale, is a slab of its own. */
  private static final long SLAB = 1 << 20;

  private final TensorReader reader;
  private final SourceWeight source;
  private final SourceScheme scheme;
  private final long rows;
  private final int cols;
  private final int rowsPerSlab;
  private final byte[] codeBytes;
  private final byte[] scaleBytes;
  private final ByteBuffer products;
  private ByteBuffer codes;
  private ByteBuffer scales;

  SourceRows(TensorReader reader, SourceWeight source) {
    this.reader = reader;
    this.source = source;
    this.scheme = source.parsed();
    this.rows = source.weight().rows();
    this.cols = Math.toIntExact(source.weight().cols());
    long block = scheme.blockRows();
    long slab = Math.max(block, SLAB / Math.max(1, cols) / block * block);
    this.rowsPerSlab = Math.toIntExact(Math.max(1, Math.min(rows, slab)));
    this.codeBytes = new byte[Math.toIntExact(scheme.dataBytes(rowsPerSlab, cols))];
    this.scaleBytes = new byte[Math.toIntExact(scheme.scaleBytes(rowsPerSlab, cols))];
    this.products = scheme.isStored()
        ? ByteBuffer.allocate(Math.multiplyExact(Math.multiplyExact(rowsPerSlab, cols), Float.BYTES))
            .order(ByteOrder.LITTLE_ENDIAN)
        : null;
  }

  long rows() {
    return rows;
  }

  int cols() {
    return cols;
  }

  /** Rows of all slabs but the last, which may have fewer. */
  int rowsPerSlab() {
    return rowsPerSlab;
  }

  /** Rows of the slab that begins at {@code row}. */
  int rowsFrom(long row) {
    return (int) Math.min(rowsPerSlab, rows - row);
  }

  /** What {@link #read} gives. */
  ElementType type() {
    return scheme.elements();
  }

  /** The elements of the slab that begins at {@code row}, little-endian, valid until the next call. */
  ByteBuffer read(long row) throws IOException {
    int count = rowsFrom(row);
    LocatedTensor weight = source.weight();
    codes = reader.read(weight, scheme.dataBytes(row, cols), (int) scheme.dataBytes(count, cols), codeBytes);
    if (!scheme.isStored()) {
      return codes;
    }

    scales = reader.read(
        source.scale(), scheme.scaleOffset(row, cols), (int) scheme.scaleBytes(count, cols), scaleBytes);
    multiply(count);
    return products.clear().limit(count * cols * Float.BYTES);
  }

  /** The codes of the slab that was read. */
  ByteBuffer codes() {
    return codes;
  }

  /** The scales of the slab that was read. */
  ByteBuffer scales() {
    return scales;
  }

  /**
   * The amax of the slab that was read: of MXFP4 the one that stands for its largest exponent.
   *
   * @param row its first row
   * @throws BadWeightException if a weight is no number
   */
  float amax(ByteBuffer elements, long row) throws BadWeightException {
    try {
      float amax = Nvfp4.amax(type(), elements);
      return scheme.isMxfp4() ? Mxfp4.amax(Mxfp4.largestExponent(scales)) : amax;
    } catch (NonFiniteException e) {
      long element = row * cols + e.index();
      throw new BadWeightException(String.format(
          "Source tensor %s (%s) has %s at [%d, %d]%s, which NVFP4 cannot stand for",
          source.name(), source.weight().file(), e.value(), element / cols, element % cols,
          source.scale() == null ? "" : ", multiplied by its scale in " + source.scale().name()));
    }
  }

  /** By the definition, one product an element. */
  private void multiply(int count) {
    WeightScheme stored = scheme.stored();
    int bits = stored.codes().bits();
    float[] values = new float[1 << bits];
    for (int code = 0; code < values.length; code++) {
      values[code] = stored.codes().decode(code);
    }

    long rowBytes = scheme.dataBytes(1, cols);
    long scaleCols = stored.scaleCols(cols);
    for (int row = 0; row < count; row++) {
      long scaleRow = stored.blockRows() == 0 ? 0 : row / stored.blockRows();
      for (int col = 0; col < cols; col++) {
        long scaleCol = stored.blockCols() == 0 ? 0 : col / stored.blockCols();
        long place = (scaleRow * scaleCols + scaleCol) * stored.scales().bytes();
        int code = codes.get((int) (row * rowBytes + (long) col * bits / 8)) >>> (col * bits % 8) & values.length - 1;
        products.putFloat(
            (row * cols + col) * Float.BYTES, values[code] * stored.scales().load(scales, (int) place));
      }
    }
  }
}
