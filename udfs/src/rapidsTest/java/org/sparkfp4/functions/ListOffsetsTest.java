package org.sparkfp4.functions;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

/** The offsets of a result; needs no GPU. */
class ListOffsetsTest {
  @Test
  void rowsFollowEachOtherAndNullsAreEmpty() {
    ListOffsets offsets = new ListOffsets("values", 5);
    offsets.addNull();
    offsets.add(64);
    offsets.add(0);
    offsets.addNull();
    offsets.add(128);

    assertThat(offsets.offsets()).containsExactly(0, 0, 64, 64, 64, 192);
    assertThat(offsets.present()).containsExactly(false, true, true, false, true);
    assertThat(offsets.start(4)).isEqualTo(64);
    assertThat(offsets.bytes()).isEqualTo(192);
  }

  @Test
  void noRowsAreNoBytes() {
    assertThat(new ListOffsets("values", 0).offsets()).containsExactly(0);
    assertThat(new ListOffsets("values", 0).bytes()).isZero();
  }

  @Test
  void aColumnEndsAtTwoGibibytes() {
    ListOffsets offsets = new ListOffsets("values", 4);
    offsets.add(1L << 30);
    offsets.add((1L << 30) - 1);
    assertThat(offsets.bytes()).isEqualTo(Integer.MAX_VALUE);

    assertThatThrownBy(() -> offsets.add(1)).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Cannot write the values of one batch of 4 rows: they pass 2147483647 bytes in row 2, lower "
            + "spark.rapids.sql.batchSizeBytes");
  }
}
