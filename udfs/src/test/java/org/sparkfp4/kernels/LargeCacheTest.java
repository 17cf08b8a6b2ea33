package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.arrow.memory.util.MemoryUtil;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.NonFiniteRowException;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.formats.ScaleRule;

/** Keys of more than 2^31 elements, and caches whose slots lie above 2^31 bytes, against the reference. */
@Tag("large")
class LargeCacheTest {
  private static final int DIM = 128;
  private static final long TOKENS = (1 << 24) + 1;
  private static final int PAGES = 5;
  private static final long STRIDE = 1L << 30;
  private static final KeyKernel REFERENCE = new JavaKeyKernel();

  private final List<KeyKernel> kernels = KeyKernels.available();
  private final KeyKernel fastest = kernels.get(kernels.size() - 1);
  private final SparseMemory memory = new SparseMemory();
  private final Random random = new Random(32);

  @BeforeEach
  void requireNative() {
    Assumptions.assumeFalse(fastest.tier().equals("java"), "the Java tier is the reference");
  }

  @AfterEach
  void free() {
    memory.close();
  }

  /** The last of 2^24 and more tokens go to the first, the last and other pages; the rest goes nowhere. */
  @Test
  void insert() {
    KeyPage page = new KeyPage(64, DIM);
    long[] places = {0, 70, 2 * 64, 3 * 64 + 1, PAGES * 64 - 1};
    long keys = memory.allocate(TOKENS * DIM * 2);
    long slots = memory.allocate(TOKENS * Long.BYTES);
    MemoryUtil.setMemory(slots, TOKENS * Long.BYTES, (byte) -1);
    long first = TOKENS - places.length;
    for (int i = 0; i < places.length; i++) {
      MemoryUtil.putLong(slots + (first + i) * Long.BYTES, places[i]);
      SparseMemory.put(keys + (first + i) * DIM * 2, finite(DIM));
    }

    long cache = memory.allocate((PAGES - 1) * STRIDE + page.bytes());
    fastest.insert(KeyForm.plain(DIM), ElementType.BF16, keys, TOKENS, slots, TOKENS,
        new KeyPages(cache, PAGES, page.tokens(), STRIDE));

    long expected = memory.allocate((long) PAGES * page.bytes());
    MemoryUtil.setMemory(expected, (long) PAGES * page.bytes(), (byte) 0);
    REFERENCE.insert(KeyForm.plain(DIM), ElementType.BF16, keys + first * DIM * 2, places.length,
        slots + first * Long.BYTES, places.length, new KeyPages(expected, PAGES, page.tokens(), page.bytes()));
    checkPages(cache, expected, page.bytes());

    MemoryUtil.putShort(keys + (TOKENS * DIM - 3) * 2, (short) 0x7FC0);
    assertThatThrownBy(() -> fastest.insert(KeyForm.plain(DIM), ElementType.BF16, keys, TOKENS, slots, TOKENS,
        new KeyPages(cache, PAGES, page.tokens(), STRIDE)))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: NaN at element %d of row %d, must be finite", DIM - 3, TOKENS - 1);
  }

  @Test
  void latents() {
    RmsNorm norm = new RmsNorm(ones(Fp8DsMla.LATENT), 1e-6f);
    long[] places = {0, 9, 2 * 8 + 3, 3 * 8, PAGES * 8 - 1};
    int tokens = places.length;
    long latents = memory.allocate((long) tokens * Fp8DsMla.LATENT * 2);
    long rope = memory.allocate((long) tokens * Fp8DsMla.ROPE * 2);
    long out = memory.allocate((long) tokens * Fp8DsMla.LATENT * 2);
    long slots = memory.allocate((long) tokens * Long.BYTES);
    SparseMemory.put(latents, finite(tokens * Fp8DsMla.LATENT));
    SparseMemory.put(rope, finite(tokens * Fp8DsMla.ROPE));
    for (int i = 0; i < tokens; i++) {
      MemoryUtil.putLong(slots + (long) i * Long.BYTES, places[i]);
    }

    int page = 8 * Fp8DsMla.BYTES;
    long cache = memory.allocate((PAGES - 1) * STRIDE + page);
    fastest.insertLatents(norm, false, ElementType.BF16, latents, rope, tokens, out, slots, tokens,
        new KeyPages(cache, PAGES, 8, STRIDE));

    long expected = memory.allocate((long) PAGES * page);
    MemoryUtil.setMemory(expected, (long) PAGES * page, (byte) 0);
    REFERENCE.insertLatents(norm, false, ElementType.BF16, latents, rope, tokens, out, slots, tokens,
        new KeyPages(expected, PAGES, 8, page));
    checkPages(cache, expected, page);
  }

  @Test
  void quantize() {
    long data = memory.allocate(TOKENS * DIM * 2);
    long packed = memory.allocate(TOKENS * DIM / 2);
    long scales = memory.allocate(TOKENS * DIM / 32);
    long[] sampled = {0, TOKENS / 2 - 1, TOKENS / 2, TOKENS - 1};
    for (long row : sampled) {
      SparseMemory.put(data + row * DIM * 2, finite(DIM));
    }

    fastest.quantize(ScaleRule.CEIL, ElementType.BF16, data, TOKENS, DIM, packed, scales);

    for (long row : sampled) {
      Mxfp4Rows expected =
          Mxfp4Rows.of(REFERENCE, ScaleRule.CEIL, ElementType.BF16, SparseMemory.get(data + row * DIM * 2, DIM * 2), DIM);
      assertThat(SparseMemory.get(packed + row * DIM / 2, DIM / 2)).as("row %d", row).isEqualTo(expected.packed());
      assertThat(SparseMemory.get(scales + row * DIM / 32, DIM / 32)).as("row %d", row).isEqualTo(expected.scales());
    }
  }

  private static void checkPages(long cache, long expected, int bytes) {
    for (int page = 0; page < PAGES; page++) {
      assertThat(SparseMemory.get(cache + page * STRIDE, bytes)).as("page %d", page)
          .isEqualTo(SparseMemory.get(expected + (long) page * bytes, bytes));
    }
  }

  /** BF16 values near one, of either sign. */
  private byte[] finite(int values) {
    byte[] bytes = SparseMemory.random(random, 2 * values);
    for (int i = 1; i < bytes.length; i += 2) {
      bytes[i] = (byte) (bytes[i] & 0x80 | 0x3F);
    }

    return bytes;
  }

  private static float[] ones(int count) {
    float[] ones = new float[count];
    Arrays.fill(ones, 1);
    return ones;
  }
}
