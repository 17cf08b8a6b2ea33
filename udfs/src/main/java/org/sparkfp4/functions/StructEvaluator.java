package org.sparkfp4.functions;

import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.apache.spark.sql.vectorized.ArrowColumnVector;
import org.apache.spark.sql.vectorized.ColumnVector;

/** A function on columns whose value is a struct of numbers: some figures of a payload, whose bytes stay in place. */
final class StructEvaluator implements ArrowEvaluator {
  private final StructType type;
  private final Figures figures;
  private final BufferAllocator allocator;

  /** @param type a struct of BIGINT, FLOAT and DOUBLE */
  StructEvaluator(StructType type, Figures figures, BufferAllocator allocator) {
    this.type = type;
    this.figures = figures;
    this.allocator = allocator;
  }

  @Override
  public ColumnVector evaluate(int rows, ColumnVector[] arguments) {
    StructVector result =
        (StructVector) ArrowUtils.toArrowField("figures", type, true, null, false).createVector(allocator);
    try {
      result.setInitialCapacity(Math.max(1, rows));
      for (int row = 0; row < rows; row++) {
        if (!arguments[0].isNullAt(row)) {
          try (NativeScratch scratch = new NativeScratch(allocator)) {
            set(result, row, figures.of(arguments, row, scratch));
          }
        }
      }

      result.setValueCount(rows);
      return new ArrowColumnVector(result);
    } catch (RuntimeException | Error e) {
      result.close();
      throw e;
    }
  }

  @Override
  public void close() {}

  private static void set(StructVector result, int row, Row values) {
    for (int field = 0; field < values.size(); field++) {
      if (!values.isNullAt(field)) {
        set((FieldVector) result.getChildByOrdinal(field), row, values.get(field));
      }
    }

    result.setIndexDefined(row);
  }

  private static void set(FieldVector vector, int row, Object value) {
    if (vector instanceof BigIntVector longs) {
      longs.setSafe(row, (Long) value);
    } else if (vector instanceof Float4Vector floats) {
      floats.setSafe(row, (Float) value);
    } else {
      ((Float8Vector) vector).setSafe(row, (Double) value);
    }
  }

  /** The figures of one row. */
  interface Figures {
    /**
     * A row of the type's fields; the first argument is not null.
     *
     * @param scratch memory until it returns
     */
    Row of(ColumnVector[] arguments, int row, NativeScratch scratch);
  }
}
