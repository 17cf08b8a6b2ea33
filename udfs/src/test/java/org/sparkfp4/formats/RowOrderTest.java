package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class RowOrderTest {
  @ParameterizedTest
  @EnumSource(RowOrder.class)
  void everyRowHasAPlaceOfItsOwn(RowOrder order) {
    int members = order == RowOrder.PLAIN ? 1 : 2;
    BitSet taken = new BitSet();
    for (int member = 0; member < members; member++) {
      for (int row = 0; row < 192; row++) {
        taken.set((int) order.position(member, row, members, 192));
      }
    }

    assertThat(taken.cardinality()).isEqualTo(members * 192);
    assertThat(taken.length()).isEqualTo(members * 192);
  }

  /** Rows of up are u0, u1, ..., of gate g0, ...: neither may stand where the other should. */
  @Test
  void upComesFirst() {
    List<String> interleaved = rows(RowOrder.INTERLEAVED_64, 128);
    List<String> concatenated = rows(RowOrder.CONCATENATED, 128);
    for (int i = 0; i < 256; i++) {
      int inChunk = i % 128;
      String chunk = inChunk < 64 ? "u" + (i / 128 * 64 + inChunk) : "g" + (i / 128 * 64 + inChunk - 64);
      assertThat(interleaved.get(i)).isEqualTo(chunk);
      assertThat(concatenated.get(i)).isEqualTo(i < 128 ? "u" + i : "g" + (i - 128));
    }
  }

  /** Where the kernels of TRTLLM-gen put each row of a block, in the order of the source. */
  @Test
  void trtllmGenAlternatesAndShuffles() {
    List<String> of32 = rows(RowOrder.TRTLLM_GEN_32, 32);
    // Row 1 of the alternating matrix is g0 and goes to 8, row 2 is u1 and goes to 16.
    assertThat(of32.subList(0, 4)).containsExactly("u0", "u2", "u4", "u6");
    assertThat(of32.subList(8, 12)).containsExactly("g0", "g2", "g4", "g6");
    assertThat(of32.subList(16, 20)).containsExactly("u1", "u3", "u5", "u7");
    assertThat(of32.subList(24, 34)).containsExactly("g1", "g3", "g5", "g7", "g9", "g11", "g13", "g15", "u16", "u18");
    List<String> of16 = rows(RowOrder.TRTLLM_GEN_16, 16);
    assertThat(of16.subList(0, 16)).containsExactly("u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "g0", "g1", "g2",
        "g3", "g4", "g5", "g6", "g7");
    assertThat(of16.get(16)).isEqualTo("u8");
  }

  private static List<String> rows(RowOrder order, int each) {
    List<String> rows = new ArrayList<>(Collections.nCopies(2 * each, ""));
    for (int row = 0; row < each; row++) {
      rows.set((int) order.position(0, row, 2, each), "u" + row);
      rows.set((int) order.position(1, row, 2, each), "g" + row);
    }

    return rows;
  }
}
