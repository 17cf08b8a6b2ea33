package org.sparkfp4.source;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.apache.arrow.memory.util.MemoryUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GatherTest {
  /** Matrices of odd sizes, so that tiles at the edges are partial. */
  @ParameterizedTest
  @CsvSource({"1, 3, 37, 70", "2, 1, 33, 64", "4, 2, 5, 129", "8, 3, 1, 40", "2, 2, 64, 32"})
  void transposes(int elementBytes, int matrices, int rows, int cols) {
    ByteBuffer source = counting(matrices * rows * cols * elementBytes);
    Gather gather = new Gather(
        List.of((long) matrices, (long) rows, (long) cols),
        List.of((long) rows * cols * elementBytes, (long) elementBytes, (long) rows * elementBytes), elementBytes);

    ByteBuffer target = copy(gather, source);

    assertThat(gather.span()).isEqualTo(source.capacity());
    for (int matrix = 0; matrix < matrices; matrix++) {
      for (int row = 0; row < rows; row++) {
        for (int col = 0; col < cols; col++) {
          for (int b = 0; b < elementBytes; b++) {
            int to = ((matrix * rows + row) * cols + col) * elementBytes + b;
            int from = ((matrix * cols + col) * rows + row) * elementBytes + b;
            assertThat(target.get(to)).isEqualTo(source.get(from));
          }
        }
      }
    }
  }

  @Test
  void takesEveryOtherRow() {
    ByteBuffer source = counting(6 * 5 * 2);
    Gather gather = new Gather(List.of(3L, 5L), List.of(20L, 2L), 2);

    ByteBuffer target = copy(gather, source);

    assertThat(gather.span()).isEqualTo(2 * 20 + 10);
    for (int i = 0; i < 30; i++) {
      assertThat(target.get(i)).isEqualTo(source.get(i / 10 * 20 + i % 10));
    }
  }

  @Test
  void refusesStridesThatDoNotFit() {
    assertThatThrownBy(() -> new Gather(List.of(3L, 5L), List.of(2L), 2))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid strides: [2] of shape [3, 5] (must be as many, two or three)");
  }

  private static ByteBuffer counting(int bytes) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < bytes; i++) {
      buffer.put(i, (byte) (i * 31 + (i >>> 8)));
    }

    return buffer;
  }

  private static ByteBuffer copy(Gather gather, ByteBuffer source) {
    long bytes = gather.shape().stream().reduce((long) gather.elementBytes(), (a, b) -> a * b);
    ByteBuffer target = ByteBuffer.allocateDirect((int) bytes);
    gather.copy(MemoryUtil.getByteBufferAddress(source), MemoryUtil.getByteBufferAddress(target));
    return target;
  }
}
