package org.sparkfp4.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.AbstractList;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.ArrowUtils;
import org.junit.jupiter.api.Test;

class BatchBuilderTest {
  /** As memory that runs out: of the second column, when the first is there. */
  private static final class Failing extends AbstractList<Object> {
    @Override
    public Object get(int column) {
      if (column == 1) {
        throw new OutOfMemoryError("for a test");
      }

      return 7L;
    }

    @Override
    public int size() {
      return 2;
    }
  }

  @Test
  void anErrorGivesTheVectorsBack() {
    StructType schema = new StructType().add("a", DataTypes.LongType).add("b", DataTypes.LongType);
    try (BufferAllocator allocator = ArrowUtils.rootAllocator().newChildAllocator("test", 0, Long.MAX_VALUE)) {
      BatchBuilder builder = new BatchBuilder(schema, schema, allocator, null);
      assertThatThrownBy(() -> builder.build(List.of(new SourceRow(new Failing()))))
          .isInstanceOf(OutOfMemoryError.class);
      assertThat(allocator.getAllocatedMemory()).isZero();
    }
  }
}
