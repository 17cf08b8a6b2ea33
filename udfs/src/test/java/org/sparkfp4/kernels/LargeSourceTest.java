package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Random;
import org.apache.arrow.memory.util.MemoryUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.sparkfp4.formats.CodeType;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.NonFiniteException;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.WeightScheme;

/** Stored weights of more than 2^31 elements, zeros but for some rows: those against the reference of each by itself. */
@Tag("large")
class LargeSourceTest {
  private static final int COLS = 1 << 16;
  private static final long ROWS = (1 << 15) + 1;
  private static final long ELEMENTS = ROWS * COLS;

  /** The first and the last row, and those on both sides of where the source passes 2^31 bits, bytes or elements. */
  private static final long[] SAMPLED = {0, ROWS / 16, ROWS / 8, ROWS / 4 - 1, ROWS / 4, ROWS / 2, ROWS - 2, ROWS - 1};

  private static final Nvfp4Kernel REFERENCE = new JavaKernel();

  private final List<Nvfp4Kernel> kernels = Nvfp4Kernels.available();
  private final Nvfp4Kernel fastest = kernels.get(kernels.size() - 1);
  private final SparseMemory memory = new SparseMemory();
  private final Random random = new Random(31);
  private final long[] rows = {ROWS};
  private WeightScheme scheme;
  private long codes;
  private long scales;

  private void source(String text) {
    Assumptions.assumeFalse(fastest.tier().equals("java"), "the Java tier takes too long, and its pieces have a test");
    scheme = WeightScheme.parse(text);
    codes = memory.allocate(scheme.codeBytes(ROWS, COLS));
    scales = memory.allocate(scheme.scaleBytes(ROWS, COLS));
    for (long row : SAMPLED) {
      byte[] values = SparseMemory.random(random, (int) rowCodes());
      byte[] factors = SparseMemory.random(random, (int) rowScales());
      for (int i = 0; i < values.length && scheme.codes() == CodeType.E4M3; i++) {
        values[i] = (values[i] & 0x7F) == 0x7F ? 0 : values[i];
      }

      for (int i = 0; i < factors.length; i++) {
        // exponents of E8M0, or the upper bytes of BF16 near one
        factors[i] = scheme.scales().bytes() == 1 ? (byte) (120 + (factors[i] & 7)) : i % 2 == 0 ? factors[i] : 0x3F;
      }

      SparseMemory.put(codes + row * rowCodes(), values);
      SparseMemory.put(scales + row * rowScales(), factors);
    }
  }

  @AfterEach
  void free() {
    memory.close();
  }

  @ParameterizedTest
  @CsvSource({"E4M3/E8M0/1x32", "INT4/BF16/1x32"})
  void amaxAndEncode(String text) {
    source(text);
    long packed = memory.allocate(ELEMENTS / 2);
    long blockScales = memory.allocate(ELEMENTS / 16);

    float amax = fastest.amax(scheme, one(codes), one(scales), rows, COLS);
    fastest.encode(Nvfp4Recipe.MODELOPT, BlockSearch.RTN, scheme, one(codes), one(scales), rows, COLS, amax, packed,
        blockScales, null);

    float expectedAmax = 0;
    for (long row : SAMPLED) {
      expectedAmax = Math.max(expectedAmax, REFERENCE.amax(scheme, codes(row), scales(row), new long[] {1}, COLS));
    }

    assertThat(amax).isEqualTo(expectedAmax);
    checkRows(packed, blockScales, (row, codesOut, scalesOut) -> REFERENCE.encode(Nvfp4Recipe.MODELOPT,
        BlockSearch.RTN, scheme, codes(row), scales(row), new long[] {1}, COLS, amax, codesOut, scalesOut, null));
    if (scheme.codes() == CodeType.E4M3) {
      MemoryUtil.putByte(codes + ELEMENTS - 3, (byte) 0x7F);

      assertThatThrownBy(() -> fastest.amax(scheme, one(codes), one(scales), rows, COLS))
          .isInstanceOf(NonFiniteException.class)
          .hasMessage("Invalid weight: NaN at element " + (ELEMENTS - 3) + " of segment 0, must be finite");
    }
  }

  @Test
  void castOfMxfp4() {
    source(Mxfp4.SCHEME.text());
    for (long row = 0, next = 0; row < ROWS; row++) {
      if (row == SAMPLED[(int) next]) {
        next++;
      } else {
        MemoryUtil.setMemory(scales + row * rowScales(), rowScales(), (byte) 120);
      }
    }

    long packed = memory.allocate(ELEMENTS / 2);
    long blockScales = memory.allocate(ELEMENTS / 16);

    int kmax = fastest.largestExponent(one(scales), one(ELEMENTS / 32));
    long requantized = fastest.castMxfp4(Nvfp4Recipe.MODELOPT, one(codes), one(scales), rows, COLS, kmax, packed,
        blockScales, null);

    assertThat(kmax).isZero();
    assertThat(requantized).isZero();
    checkRows(packed, blockScales, (row, codesOut, scalesOut) -> REFERENCE.castMxfp4(Nvfp4Recipe.MODELOPT, codes(row),
        scales(row), new long[] {1}, COLS, kmax, codesOut, scalesOut, null));
    MemoryUtil.putByte(scales + ELEMENTS / 32 - 1, (byte) 0xFF);

    assertThatThrownBy(() -> fastest.largestExponent(one(scales), one(ELEMENTS / 32)))
        .isInstanceOf(NonFiniteException.class).hasMessageContaining(" at element " + (ELEMENTS - 32) + " of segment 0");
  }

  @Test
  void toBf16() {
    source("E4M3/E8M0/1x32");
    long out = memory.allocate(2 * ELEMENTS);

    fastest.dequantizeToBf16(scheme, codes, scales, ROWS, COLS, out);

    long expected = memory.allocate(2 * COLS);
    for (long row : SAMPLED) {
      REFERENCE.dequantizeToBf16(scheme, codes(row)[0], scales(row)[0], 1, COLS, expected);
      assertThat(SparseMemory.get(out + 2 * row * COLS, 2 * COLS)).as("row %d", row)
          .isEqualTo(SparseMemory.get(expected, 2 * COLS));
    }
  }

  /** What encodes one row into memory of its own. */
  private interface RowEncoder {
    void encode(long row, long packed, long scales);
  }

  private void checkRows(long packed, long blockScales, RowEncoder encoder) {
    long expectedCodes = memory.allocate(COLS / 2);
    long expectedScales = memory.allocate(COLS / 16);
    for (long row : SAMPLED) {
      encoder.encode(row, expectedCodes, expectedScales);
      assertThat(SparseMemory.get(packed + row * COLS / 2, COLS / 2)).as("codes of row %d", row)
          .isEqualTo(SparseMemory.get(expectedCodes, COLS / 2));
      assertThat(SparseMemory.get(blockScales + row * COLS / 16, COLS / 16)).as("scales of row %d", row)
          .isEqualTo(SparseMemory.get(expectedScales, COLS / 16));
    }
  }

  private long[] codes(long row) {
    return one(codes + row * rowCodes());
  }

  private long[] scales(long row) {
    return one(scales + row * rowScales());
  }

  private long rowCodes() {
    return scheme.codeBytes(1, COLS);
  }

  private long rowScales() {
    return scheme.scaleBytes(1, COLS);
  }

  private static long[] one(long value) {
    return new long[] {value};
  }
}
