package org.sparkfp4.functions;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVectorHelper;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;
import org.apache.arrow.vector.util.TransferPair;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/** Arrow vectors of rows of weights, as awkward as a source may make them. */
public final class WeightVectors {
  /** Bytes before the first value, so that offsets begin at an odd number and no value is aligned. */
  private static final int LEAD = 3;

  private WeightVectors() {}

  /** The ten arguments of nvfp4_quantize. */
  public static ColumnVector[] arguments(List<WeightRow> rows, BufferAllocator allocator) {
    FieldVector[] vectors = {
        payload(rows, 0, allocator), payload(rows, 1, allocator), payload(rows, 2, allocator), absent(rows, allocator),
        absent(rows, allocator), absent(rows, allocator), dtypes(rows, allocator), cols(rows, allocator),
        amaxes(rows, allocator), absent(rows, allocator)};
    ColumnVector[] columns = new ColumnVector[vectors.length];
    for (int i = 0; i < columns.length; i++) {
      columns[i] = new ArrowColumnVector(vectors[i]);
    }

    return columns;
  }

  /** A slice, by Arrow's own means, without the vector's first row. */
  public static ColumnVector withoutFirst(ColumnVector column, int rows, BufferAllocator allocator) {
    FieldVector vector = (FieldVector) ((ArrowColumnVector) column).getValueVector();
    TransferPair pair = vector.getTransferPair(allocator);
    pair.splitAndTransfer(1, rows - 1);
    vector.close();
    return new ArrowColumnVector(pair.getTo());
  }

  public static VarBinaryVector payload(List<WeightRow> rows, int member, BufferAllocator allocator) {
    long bytes = rows.stream().mapToLong(row -> length(row, member)).sum();
    try (ArrowBuf validity = allocator.buffer(rows.size() / 8 + 1);
        ArrowBuf offsets = allocator.buffer((rows.size() + 1) * 4L);
        ArrowBuf data = allocator.buffer(LEAD + bytes)) {
      validity.setZero(0, validity.capacity());
      int end = LEAD;
      int nulls = 0;
      for (int i = 0; i < rows.size(); i++) {
        offsets.setInt(i * 4L, end);
        byte[] value = rows.get(i).members()[member];
        if (value == null) {
          nulls++;
        } else {
          BitVectorHelper.setBit(validity, i);
          data.setBytes(end, value);
          end += value.length;
        }
      }

      offsets.setInt(rows.size() * 4L, end);
      VarBinaryVector vector = new VarBinaryVector("data" + member, allocator);
      vector.loadFieldBuffers(new ArrowFieldNode(rows.size(), nulls), List.of(validity, offsets, data));
      return vector;
    }
  }

  private static VarBinaryVector absent(List<WeightRow> rows, BufferAllocator allocator) {
    VarBinaryVector vector = new VarBinaryVector("scale", allocator);
    vector.allocateNew(0, Math.max(1, rows.size()));
    vector.setValueCount(rows.size());
    return vector;
  }

  public static VarCharVector dtypes(List<WeightRow> rows, BufferAllocator allocator) {
    VarCharVector vector = new VarCharVector("dtype", allocator);
    vector.allocateNew();
    for (int i = 0; i < rows.size(); i++) {
      vector.setSafe(i, rows.get(i).dtype().getBytes(StandardCharsets.UTF_8));
    }

    vector.setValueCount(rows.size());
    return vector;
  }

  public static BigIntVector cols(List<WeightRow> rows, BufferAllocator allocator) {
    BigIntVector vector = new BigIntVector("cols", allocator);
    vector.allocateNew(rows.size());
    for (int i = 0; i < rows.size(); i++) {
      vector.set(i, rows.get(i).cols());
    }

    vector.setValueCount(rows.size());
    return vector;
  }

  public static Float4Vector amaxes(List<WeightRow> rows, BufferAllocator allocator) {
    Float4Vector vector = new Float4Vector("amax", allocator);
    vector.allocateNew(rows.size());
    for (int i = 0; i < rows.size(); i++) {
      if (rows.get(i).amax() != null) {
        vector.set(i, rows.get(i).amax());
      }
    }

    vector.setValueCount(rows.size());
    return vector;
  }

  private static int length(WeightRow row, int member) {
    byte[] value = row.members()[member];
    return value == null ? 0 : value.length;
  }
}
