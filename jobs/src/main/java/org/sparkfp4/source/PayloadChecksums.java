package org.sparkfp4.source;

import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Fills the column of checksums where a query asks for it, while the payloads are about to be worked on. */
final class PayloadChecksums {
  private static final List<String> PAYLOADS = List.of("data0", "data1", "data2", "scale0", "scale1", "scale2");

  private final int column;
  private final int[] payloads;

  /**
   * @throws IllegalArgumentException if the checksums are asked for without all that they are of
   */
  PayloadChecksums(StructType required) {
    List<String> names = Arrays.asList(required.fieldNames());
    this.column = names.indexOf(SourceSchema.CHECKSUMS);
    this.payloads = PAYLOADS.stream().mapToInt(names::indexOf).toArray();
    if (column >= 0 && Arrays.stream(payloads).anyMatch(payload -> payload < 0)) {
      throw new IllegalArgumentException(
          "Cannot read the column " + SourceSchema.CHECKSUMS + " without " + PAYLOADS + ", which it is of");
    }
  }

  /** A vector of one row that has room for the checksums. */
  static VarBinaryVector vector(BufferAllocator allocator) {
    VarBinaryVector vector = new VarBinaryVector(SourceSchema.CHECKSUMS, allocator);
    byte[] none = new byte[PAYLOADS.size() * Integer.BYTES];
    vector.allocateNew(none.length, 1);
    vector.setSafe(0, none);
    vector.setValueCount(1);
    return vector;
  }

  /** Sums up the payloads of a batch's one row. */
  void fill(ColumnarBatch batch) {
    if (column < 0) {
      return;
    }

    VarBinaryVector checksums = vector(batch, column);
    for (int i = 0; i < payloads.length; i++) {
      VarBinaryVector payload = vector(batch, payloads[i]);
      if (!payload.isNull(0) && payload.getValueLength(0) > 0) {
        CRC32C crc = new CRC32C();
        crc.update(payload.getDataBuffer().nioBuffer(payload.getStartOffset(0), payload.getValueLength(0)));
        checksums.getDataBuffer().setInt((long) i * Integer.BYTES, (int) crc.getValue());
      }
    }
  }

  private static VarBinaryVector vector(ColumnarBatch batch, int column) {
    return (VarBinaryVector) ((ArrowColumnVector) batch.column(column)).getValueVector();
  }
}
