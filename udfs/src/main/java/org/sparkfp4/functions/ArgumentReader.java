package org.sparkfp4.functions;

import org.apache.arrow.memory.ArrowBuf;
import org.apache.spark.sql.vectorized.ColumnVector;

/** The arguments of one batch as Java values; payloads become segments, where they lie if that is native memory. */
final class ArgumentReader {
  private final ColumnVector[] arguments;
  private final int dtypeOrdinal;
  private final NativeScratch scratch;

  /**
   * @param arguments the members' payloads, then the dtype, then the function's own
   * @param dtypeOrdinal payloads before the dtype
   */
  ArgumentReader(ColumnVector[] arguments, int dtypeOrdinal, NativeScratch scratch) {
    this.arguments = arguments;
    this.dtypeOrdinal = dtypeOrdinal;
    this.scratch = scratch;
  }

  /** The row's members, or null if it has none: data0 is null. */
  Segments segments(int row) {
    if (arguments[0].isNullAt(row)) {
      return null;
    }

    ColumnVector dtype = arguments[dtypeOrdinal];
    Segments segments = new Segments(dtype.isNullAt(row) ? null : dtype.getUTF8String(row).toString());
    for (int member = 0; member < dtypeOrdinal; member++) {
      if (!arguments[member].isNullAt(row)) {
        add(segments, member, row);
      }
    }

    return segments;
  }

  Long longAt(int argument, int row) {
    return arguments[argument].isNullAt(row) ? null : arguments[argument].getLong(row);
  }

  Float floatAt(int argument, int row) {
    return arguments[argument].isNullAt(row) ? null : arguments[argument].getFloat(row);
  }

  private void add(Segments segments, int member, int row) {
    ColumnVector payload = arguments[member];
    if (ArrowBytes.canView(payload)) {
      ArrowBuf bytes = ArrowBytes.of(payload, row);
      segments.add(member, bytes.memoryAddress(), bytes.capacity());
    } else {
      // Spark's own vectors (Parquet, say) and literals are on the heap.
      byte[] bytes = payload.getBinary(row);
      segments.add(member, scratch.copy(bytes), bytes.length);
    }
  }
}
