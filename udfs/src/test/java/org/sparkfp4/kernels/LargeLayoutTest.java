package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Random;
import org.apache.arrow.memory.util.MemoryUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.CodeLayout;
import org.sparkfp4.formats.E2M1;
import org.sparkfp4.formats.ElementType;

/** Matrices of more than 2^31 codes, and of as many scales, zeros but for some places, which the layouts' formulas find. */
@Tag("large")
class LargeLayoutTest {
  private static final long K = 1 << 16;
  private static final long ROWS = (1 << 15) + 128;

  /** Of these 16 codes: the first, the last, and some on both sides of 2^31 nibbles. */
  private static final long[] BLOCKS = {0, 12_345, (1L << 27) - 1, 1L << 27, ROWS * K / 16 - 1};

  private final List<LayoutKernel> kernels = LayoutKernels.available();
  private final LayoutKernel fastest = kernels.get(kernels.size() - 1);
  private final SparseMemory memory = new SparseMemory();
  private final Random random = new Random(33);

  @BeforeEach
  void requireNative() {
    Assumptions.assumeFalse(fastest.tier().equals("java"), "the Java tier takes too long");
  }

  @AfterEach
  void free() {
    memory.close();
  }

  @ParameterizedTest
  @EnumSource(names = "ROW_MAJOR", mode = EnumSource.Mode.EXCLUDE)
  void codes(CodeLayout layout) {
    Arrangement shape = Arrangement.plain(ROWS, K);
    long source = memory.allocate(shape.memberCodes());
    for (long block : BLOCKS) {
      SparseMemory.put(source + 8 * block, SparseMemory.random(random, 8));
    }

    long arranged = memory.allocate(layout.bytes(ROWS, K));
    fastest.arrangeCodes(layout, shape, new long[] {source}, arranged);

    for (long block : BLOCKS) {
      for (long element = 16 * block; element < 16 * block + 16; element++) {
        assertThat(nibble(arranged, layout.nibble(element / K, element % K, ROWS, K))).as("element %d", element)
            .isEqualTo(nibble(source, element));
      }
    }
  }

  /** Of 2^31 and more scales there would be 2^35 codes: none of them is needed here. */
  @ParameterizedTest
  @EnumSource(names = {"ATOM_128X4", "MARLIN_E4M3"})
  void scales(BlockScaleLayout layout) {
    long columns = K;
    Arrangement shape = Arrangement.plain(ROWS, 16 * columns);
    long source = memory.allocate(shape.memberScales());
    for (long block : BLOCKS) {
      SparseMemory.put(source + 16 * block, SparseMemory.random(random, 16));
    }

    long arranged = memory.allocate(layout.bytes(ROWS, columns));
    fastest.arrangeScales(layout, shape, new long[] {source}, 1, arranged);

    for (long block : BLOCKS) {
      for (long scale = 16 * block; scale < 16 * block + 16; scale++) {
        assertThat(MemoryUtil.getByte(arranged + layout.position(scale / columns, scale % columns, ROWS, columns)))
            .as("scale %d", scale).isEqualTo(MemoryUtil.getByte(source + scale));
      }
    }
  }

  @Test
  void firstScaleAboveALimit() {
    long count = (1L << 31) + 5;
    long scales = memory.allocate(count);
    assertThat(fastest.firstAbove(scales, count, 0x7E)).isEqualTo(-1);
    MemoryUtil.putByte(scales + count - 2, (byte) 0x80);

    assertThat(fastest.firstAbove(scales, count, 0x7E)).isEqualTo(count - 2);
  }

  @Test
  void decode() {
    int rows = (1 << 15) + 1;
    long elements = rows * K;
    long codes = memory.allocate(elements / 2);
    long scales = memory.allocate(elements / 16);
    long[] blocks = {0, 12_345, (1L << 27) - 1, 1L << 27, elements / 16 - 1};
    for (long block : blocks) {
      SparseMemory.put(codes + 8 * block, SparseMemory.random(random, 8));
    }

    // one everywhere
    MemoryUtil.setMemory(scales, elements / 16, (byte) 0x38);

    long out = memory.allocate(2 * elements);
    fastest.decode(new TensorMemory(true, 1, rows, (int) K, codes, scales, null), ElementType.BF16, out);

    for (long block : blocks) {
      for (long element = 16 * block; element < 16 * block + 16; element++) {
        int upper = Float.floatToRawIntBits(E2M1.decode(nibble(codes, element))) >>> 16;
        assertThat(MemoryUtil.getShort(out + 2 * element)).as("element %d", element).isEqualTo((short) upper);
      }
    }
  }

  private static int nibble(long address, long index) {
    return MemoryUtil.getByte(address + index / 2) >>> (int) (index % 2 * 4) & 0xF;
  }
}
