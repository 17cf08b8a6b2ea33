package org.sparkfp4.sink;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.sparkfp4.columnar.ArrowRow;
import org.sparkfp4.functions.Nvfp4Gptq;
import org.sparkfp4.functions.Nvfp4Quantize;

/** Reads a row of the write, whatever stands behind it: Arrow buffers where the columnar rule runs, else heap arrays. */
final class EncodedSlabReader {
  private static final int UNIT = 0;
  private static final int SLAB = 1;
  private static final int QUANTIZED = 2;
  private static final int CHECKSUMS = 3;

  // fields of Nvfp4Quantize.RETURN_TYPE
  private static final int PACKED = 0;
  private static final int SCALES = 1;
  private static final int AMAX = 2;
  private static final int SUM_SQUARES = 3;
  private static final int SQUARED_ERROR = 4;
  private static final int GLOBAL_SCALE = 5;
  private static final int REQUANTIZED = 6;

  // behind them, of Nvfp4Gptq.RETURN_TYPE
  private static final int GPTQ_ROWS = 7;

  private final boolean gptq;

  /** @param gptq whether rows are those of {@link Nvfp4Gptq} */
  EncodedSlabReader(boolean gptq) {
    this.gptq = gptq;
  }

  EncodedSlab read(InternalRow row) {
    InternalRow quantized = row.getStruct(
        QUANTIZED, gptq ? Nvfp4Gptq.RETURN_TYPE.length() : Nvfp4Quantize.RETURN_TYPE.length());
    long[] requantized = quantized.getArray(REQUANTIZED).toLongArray();
    ArrowRow arrow = row instanceof ArrowRow onColumns ? onColumns : null;
    return new EncodedSlab(
        row.getInt(UNIT),
        row.getInt(SLAB),
        bytes(arrow, quantized, PACKED),
        bytes(arrow, quantized, SCALES),
        quantized.getFloat(AMAX),
        quantized.getArray(SUM_SQUARES).toDoubleArray(),
        quantized.getArray(SQUARED_ERROR).toDoubleArray(),
        quantized.getFloat(GLOBAL_SCALE),
        requantized,
        gptq ? quantized.getArray(GPTQ_ROWS).toLongArray() : new long[requantized.length],
        row.numFields() > CHECKSUMS ? ints(row.getBinary(CHECKSUMS)) : null);
  }

  private static int[] ints(byte[] littleEndian) {
    int[] ints = new int[littleEndian.length / Integer.BYTES];
    ByteBuffer.wrap(littleEndian).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer().get(ints);
    return ints;
  }

  private static ByteBuffer bytes(ArrowRow arrow, InternalRow quantized, int field) {
    if (arrow == null) {
      return ByteBuffer.wrap(quantized.getBinary(field));
    }

    return ArrowRow.bytes(arrow.batchColumn(QUANTIZED).getChild(field), arrow.rowId()).nioBuffer();
  }
}
