package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.apache.arrow.memory.util.MemoryUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4Recipe;

/**
 * More than 2^31 elements. The source is never written but for its end, so that it has addresses and hardly any memory:
 * an allocation of this size comes fresh from the operating system, zero.
 */
@Tag("large")
class LargeSegmentTest {
  private static final long COLS = 1 << 16;
  private static final long ROWS = (1 << 15) + 1;
  private static final long ELEMENTS = ROWS * COLS;
  private static final short THREE = 0x4040;

  private final List<Nvfp4Kernel> kernels = Nvfp4Kernels.available();
  private final Nvfp4Kernel fastest = kernels.get(kernels.size() - 1);
  private long source;
  private long packed;
  private long scales;

  @BeforeEach
  void allocate() {
    Assumptions.assumeFalse(fastest.tier().equals("java"), "the Java tier takes too long, and its pieces have a test");
    source = MemoryUtil.allocateMemory(ELEMENTS * 2);
    packed = MemoryUtil.allocateMemory(ELEMENTS / 2);
    scales = MemoryUtil.allocateMemory(ELEMENTS / 16);
    MemoryUtil.putShort(source + 2 * (ELEMENTS - 1), THREE);
  }

  @AfterEach
  void free() {
    for (long address : new long[] {source, packed, scales}) {
      if (address != 0) {
        MemoryUtil.freeMemory(address);
      }
    }
  }

  @Test
  void amaxAndEncode() {
    long[] addresses = {source};
    float amax = fastest.amax(ElementType.BF16, addresses, new long[] {ELEMENTS});
    ErrorSums sums = new ErrorSums();
    fastest.encode(Nvfp4Recipe.MODELOPT, BlockSearch.RTN, ElementType.BF16, addresses, new long[] {ROWS}, COLS, amax,
        packed, scales,
        new ErrorSums[] {sums});

    assertThat(amax).isEqualTo(3);
    assertThat(MemoryUtil.getByte(scales)).isEqualTo((byte) 0x38);
    assertThat(MemoryUtil.getByte(scales + ELEMENTS / 16 - 2)).isEqualTo((byte) 0x38);
    assertThat(MemoryUtil.getByte(scales + ELEMENTS / 16 - 1)).isEqualTo((byte) 0x7e);
    assertThat(MemoryUtil.getByte(packed + ELEMENTS / 2 - 2)).isZero();
    assertThat(MemoryUtil.getByte(packed + ELEMENTS / 2 - 1)).isEqualTo((byte) 0x70);
    assertThat(sums.squares()).isEqualTo(9);

    MemoryUtil.putShort(source + 2 * (ELEMENTS - 3), (short) 0xff80);

    assertThatThrownBy(() -> fastest.amax(ElementType.BF16, addresses, new long[] {ELEMENTS}))
        .isInstanceOf(NonFiniteException.class)
        .hasMessage("Invalid weight: -Infinity at element " + (ELEMENTS - 3) + " of segment 0, must be finite");
  }
}
