package org.sparkfp4.source;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.ipc.message.ArrowFieldNode;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.arrow.vector.types.pojo.FieldType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** Makes batches of Arrow vectors; payloads are wrapped where they lie, not copied. */
final class BatchBuilder {
  private final StructField[] fields;
  private final int[] ordinals;
  private final BufferAllocator allocator;
  private final SourceInputs inputs;

  BatchBuilder(StructType full, StructType required, BufferAllocator allocator, SourceInputs inputs) {
    this.fields = required.fields();
    this.ordinals = Arrays.stream(fields).mapToInt(field -> full.fieldIndex(field.name())).toArray();
    this.allocator = allocator;
    this.inputs = inputs;
  }

  boolean readsPayload() {
    return Arrays.stream(fields).anyMatch(BatchBuilder::isPayload);
  }

  /** A batch of these rows, one row only if there is a payload among the columns. */
  ColumnarBatch build(List<SourceRow> rows) throws IOException {
    List<FieldVector> vectors = new ArrayList<>();
    try {
      for (int i = 0; i < fields.length; i++) {
        vectors.add(vector(i, rows));
      }
    } catch (Throwable e) {
      // an Error too: memory that an allocation did not get is one
      vectors.forEach(FieldVector::close);
      throw e;
    }

    ColumnVector[] columns = vectors.stream().map(ArrowColumnVector::new).toArray(ColumnVector[]::new);
    return new ColumnarBatch(columns, rows.size());
  }

  private FieldVector vector(int column, List<SourceRow> rows) throws IOException {
    if (fields[column].name().equals(SourceSchema.CHECKSUMS)) {
      return PayloadChecksums.vector(allocator);
    }

    return isPayload(fields[column]) ? payload(fields[column], ordinals[column], rows) : scalars(column, rows);
  }

  private static boolean isPayload(StructField field) {
    return field.dataType().equals(DataTypes.BinaryType);
  }

  private FieldVector scalars(int column, List<SourceRow> rows) {
    StructField field = fields[column];
    // not by toArrowField: versions of Spark differ in its arguments
    FieldType type = new FieldType(field.nullable(), ArrowUtils.toArrowType(field.dataType(), "UTC", false), null);
    FieldVector vector = new Field(field.name(), type, List.of()).createVector(allocator);
    try {
      vector.setInitialCapacity(rows.size());
      vector.allocateNew();
      for (int row = 0; row < rows.size(); row++) {
        set(vector, row, rows.get(row).values().get(ordinals[column]));
      }

      vector.setValueCount(rows.size());
    } catch (Throwable e) {
      vector.close();
      throw e;
    }

    return vector;
  }

  private static void set(FieldVector vector, int row, Object value) {
    if (value == null) {
      vector.setNull(row);
    } else if (vector instanceof IntVector ints) {
      ints.setSafe(row, (Integer) value);
    } else if (vector instanceof BigIntVector longs) {
      longs.setSafe(row, (Long) value);
    } else if (vector instanceof Float4Vector floats) {
      floats.setSafe(row, (Float) value);
    } else if (vector instanceof VarCharVector strings) {
      strings.setSafe(row, ((String) value).getBytes(StandardCharsets.UTF_8));
    } else {
      throw new IllegalStateException("Cannot set a value of " + vector.getField());
    }
  }

  private FieldVector payload(StructField field, int ordinal, List<SourceRow> rows) throws IOException {
    if (rows.size() != 1) {
      throw new IllegalStateException("Cannot build a batch of " + rows.size() + " payloads: each is a batch");
    }

    ByteRange range = (ByteRange) rows.get(0).values().get(ordinal);
    VarBinaryVector vector = new VarBinaryVector(field.name(), allocator);
    if (range == null || range.length() == 0) {
      vector.allocateNew(0, 1);
      if (range == null) {
        vector.setNull(0);
      } else {
        vector.setSafe(0, new byte[0]);
      }

      vector.setValueCount(1);
      return vector;
    }

    try (ArrowBuf data = inputs.read(allocator, range); ArrowBuf offsets = allocator.buffer(2L * Integer.BYTES)) {
      offsets.setInt(0, 0);
      offsets.setInt(Integer.BYTES, Math.toIntExact(range.length()));
      data.writerIndex(range.length());
      offsets.writerIndex(2L * Integer.BYTES);
      // the vector makes its own validity when nothing is null, and retains the other two
      vector.loadFieldBuffers(new ArrowFieldNode(1, 0), List.of(allocator.getEmpty(), offsets, data));
    }

    return vector;
  }
}
