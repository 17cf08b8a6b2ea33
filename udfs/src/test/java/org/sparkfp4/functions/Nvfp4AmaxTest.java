package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.junit.jupiter.api.Test;

class Nvfp4AmaxTest {
  private final Nvfp4Amax function = new Nvfp4Amax("auto");

  @Test
  void rowsGiveTheLargestMagnitudeOfAllMembers() {
    for (int unit = 0; unit < 6; unit++) {
      WeightRow row = WeightRow.random(unit);
      assertThat(call(row)).isEqualTo(row.referenceAmax());
    }
  }

  @Test
  void columnsGiveTheSame() {
    List<WeightRow> rows =
        List.of(WeightRow.random(1), WeightRow.random(2).withoutData(), WeightRow.random(3), WeightRow.random(5));
    try (BufferAllocator allocator = new RootAllocator(); ArrowEvaluator evaluator = function.open(allocator)) {
      ColumnVector[] arguments = WeightVectors.arguments(rows, allocator);
      try (ColumnVector result = evaluator.evaluate(rows.size(), Arrays.copyOf(arguments, 8))) {
        assertThat(result.dataType()).isEqualTo(Nvfp4Amax.RETURN_TYPE);
        assertThat(result.isNullAt(1)).isTrue();
        for (int row : new int[] {0, 2, 3}) {
          assertThat(result.getFloat(row)).isEqualTo(rows.get(row).referenceAmax());
        }
      }

      for (ColumnVector argument : arguments) {
        argument.close();
      }
    }
  }

  @Test
  void noDataGivesNothingAndNoElementsGiveZero() {
    assertThat(function.call(null, null, null, null, null, null, "BF16", null)).isNull();
    assertThat(function.call(new byte[0], null, null, null, null, null, "BF16", null)).isZero();
  }

  @Test
  void weightThatIsNotFiniteIsTheAmax() {
    assertThat(call(WeightRow.random(4).withNaN(1, 17))).isNaN();
  }

  @Test
  void whatCannotBeIsNamed() {
    assertThatThrownBy(() -> function.call(new byte[7], null, null, null, null, null, "F32", null))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Invalid payload (data0): 7 bytes are no whole number of F32 elements");
  }

  private Float call(WeightRow row) {
    return function.call(row.members()[0], row.members()[1], row.members()[2], null, null, null, row.dtype(), null);
  }
}
