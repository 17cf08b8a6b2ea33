package org.sparkfp4.kernels;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.sparkfp4.formats.BFloat16;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Float16;
import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.KeyForm;
import org.sparkfp4.formats.KeyPage;
import org.sparkfp4.formats.LayerNorm;
import org.sparkfp4.formats.NonFiniteRowException;
import org.sparkfp4.formats.RmsNorm;
import org.sparkfp4.formats.ScaleRule;

/** Every native tier against the reference, byte for byte. */
class KeyKernelTest {
  private static final KeyKernel REFERENCE = new JavaKeyKernel();

  private final Random random = new Random(17);

  static List<KeyKernel> kernels() {
    return KeyKernels.available();
  }

  @Test
  void theTierIsTheOneThatWeightsHave() {
    assertThat(KeyKernels.forTier("auto").tier()).isEqualTo(Nvfp4Kernels.forTier("auto").tier());
    assertThat(KeyKernels.available()).extracting(KeyKernel::tier)
        .isEqualTo(Nvfp4Kernels.available().stream().map(Nvfp4Kernel::tier).toList());
    assertThatThrownBy(() -> KeyKernels.forTier("sse9")).isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("Invalid kernel tier: sse9");
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void everyBFloat16InEveryRule(KeyKernel kernel) {
    // each value stands in a block of its own, beside an amax from one to sixteen times as large
    byte[] data = new byte[0x10000 * 64];
    ByteBuffer bytes = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    for (int bits = 0; bits < 0x10000; bits++) {
      short value = (bits & 0x7F80) == 0x7F80 ? 0 : (short) bits;
      bytes.putShort(64 * bits + 2 * (bits % 31), value);
      float larger = BFloat16.toFloat(value) * (1 + random.nextFloat() * 15);
      bytes.putShort(64 * bits + 62, Float.isFinite(BFloat16.toFloat(BFloat16.fromFloat(larger)))
          ? BFloat16.fromFloat(larger) : 0);
    }

    for (ScaleRule rule : ScaleRule.values()) {
      check(kernel, rule, ElementType.BF16, data, 64);
    }
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void randomBitsOfEveryType(KeyKernel kernel) {
    for (ElementType type : ElementType.values()) {
      for (int cols : new int[] {32, 96, 128, 160, 2048}) {
        for (ScaleRule rule : ScaleRule.values()) {
          check(kernel, rule, type, randomBits(type, 37 * cols), cols);
          check(kernel, rule, type, gaussian(type, 37 * cols, 3), cols);
        }
      }
    }
  }

  private static void check(KeyKernel kernel, ScaleRule rule, ElementType type, byte[] data, int cols) {
    Mxfp4Rows expected = Mxfp4Rows.of(REFERENCE, rule, type, data, cols);
    Mxfp4Rows rows = Mxfp4Rows.of(kernel, rule, type, data, cols);
    assertThat(rows.scales()).as("scales of %s, %s", rule, type).isEqualTo(expected.scales());
    assertThat(rows.packed()).as("codes of %s, %s", rule, type).isEqualTo(expected.packed());
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void insertedKeysOfEveryForm(KeyKernel kernel) {
    for (int dim : new int[] {32, 64, 96, 128, 256, 1024}) {
      LayerNorm norm = new LayerNorm(floats(dim, 1), floats(dim, 0), 1e-5f);
      for (ElementType type : ElementType.values()) {
        for (int variant = 0; variant < 8; variant++) {
          boolean hadamard = (variant & 1) != 0 && Integer.bitCount(dim) == 1;
          boolean round = (variant & 2) != 0;
          ScaleRule rule = ScaleRule.values()[random.nextInt(4)];
          KeyForm form = new KeyForm(dim, variant < 4 ? norm : null, round, hadamard, rule);
          checkInsert(kernel, form, type, gaussian(type, 50 * dim, 2), 50);
        }

        checkInsert(kernel, KeyForm.plain(dim), type, randomBits(type, 50 * dim), 50);
      }
    }
  }

  /** Random slots, some of them negative, fewer slots than tokens, pages apart from each other, every other byte kept. */
  private void checkInsert(KeyKernel kernel, KeyForm form, ElementType type, byte[] data, int tokens) {
    KeyPage page = new KeyPage(random.nextBoolean() ? 64 : 7, form.dim());
    int pageCount = 100 / page.tokens() + 1;
    int stride = page.bytes() + random.nextInt(3) * 16;
    long[] slots = random.ints(0, pageCount * page.tokens()).distinct().limit(tokens - 5).asLongStream().toArray();
    slots[3] = -1;
    slots[17] = Long.MIN_VALUE;
    byte[] cache = new byte[(pageCount - 1) * stride + page.bytes()];
    random.nextBytes(cache);
    byte[] expected = insert(REFERENCE, form, type, data, tokens, slots, cache, pageCount, page, stride);
    byte[] written = insert(kernel, form, type, data, tokens, slots, cache, pageCount, page, stride);
    assertThat(written).as("%s of %s", form, type).isEqualTo(expected);

    boolean[] owned = new boolean[cache.length];
    for (long slot : slots) {
      if (slot >= 0) {
        int base = (int) (slot / page.tokens()) * stride;
        int token = (int) (slot % page.tokens());
        Arrays.fill(owned, base + token * form.dim() / 2, base + (token + 1) * form.dim() / 2, true);
        int scales = base + page.tokens() * form.dim() / 2;
        Arrays.fill(owned, scales + token * form.dim() / 32, scales + (token + 1) * form.dim() / 32, true);
      }
    }

    for (int i = 0; i < cache.length; i++) {
      if (!owned[i]) {
        assertThat(written[i]).as("byte %d, which no token has", i).isEqualTo(cache[i]);
      }
    }
  }

  private static byte[] insert(KeyKernel kernel, KeyForm form, ElementType type, byte[] keys, int tokens, long[] slots,
      byte[] cache, int pageCount, KeyPage page, int stride) {
    NativeMemory source = NativeMemory.of(keys, 0);
    NativeMemory slotMemory = NativeMemory.of(bytes(slots), 0);
    NativeMemory pages = NativeMemory.of(cache, 5);
    kernel.insert(form, type, source.address(), tokens, slotMemory.address(), slots.length,
        new KeyPages(pages.address(), pageCount, page.tokens(), stride));
    List.of(source, slotMemory, pages).forEach(NativeMemory::checkGuards);
    return pages.bytes();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void normalisedRows(KeyKernel kernel) {
    for (ElementType type : ElementType.values()) {
      for (int cols : new int[] {32, 512, 1536}) {
        RmsNorm norm = new RmsNorm(floats(cols, 1), 1e-6f);
        byte[] data = gaussian(type, 9 * cols, 2);
        assertThat(normalised(kernel, norm, type, data, 9)).isEqualTo(normalised(REFERENCE, norm, type, data, 9));
      }
    }
  }

  private static byte[] normalised(KeyKernel kernel, RmsNorm norm, ElementType type, byte[] data, int rows) {
    NativeMemory source = NativeMemory.of(data, 0);
    NativeMemory out = NativeMemory.room(data.length, 0);
    kernel.normalise(norm, type, source.address(), rows, out.address());
    List.of(source, out).forEach(NativeMemory::checkGuards);
    return out.bytes();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void latentEntries(KeyKernel kernel) {
    RmsNorm norm = new RmsNorm(floats(Fp8DsMla.LATENT, 1), 1e-6f);
    for (ElementType type : ElementType.values()) {
      for (boolean round : new boolean[] {false, true}) {
        byte[] latents = gaussian(type, 20 * Fp8DsMla.LATENT, 2);
        // a tile of zeros, and values that become subnormal codes
        Arrays.fill(latents, 0, 128 * type.bytes(), (byte) 0);
        byte[] rope = gaussian(type, 20 * Fp8DsMla.ROPE, 1);
        long[] slots = {5, -1, 31, 0, 17, 8, 12, 30, 1, 2, 3, 4, 6, 7, 9, 10};
        byte[] expected = latents(REFERENCE, norm, round, type, latents, rope, slots);
        assertThat(latents(kernel, norm, round, type, latents, rope, slots)).isEqualTo(expected);
      }
    }
  }

  /** The normalised latents, then the pages: four of eight entries. */
  private static byte[] latents(KeyKernel kernel, RmsNorm norm, boolean round, ElementType type, byte[] latents,
      byte[] rope, long[] slots) {
    NativeMemory source = NativeMemory.of(latents, 0);
    NativeMemory rotary = NativeMemory.of(rope, 0);
    NativeMemory slotMemory = NativeMemory.of(bytes(slots), 0);
    NativeMemory out = NativeMemory.room(latents.length, 0);
    int stride = 8 * Fp8DsMla.BYTES + 32;
    NativeMemory pages = NativeMemory.room(4 * stride, 1);
    kernel.insertLatents(norm, round, type, source.address(), rotary.address(), 20, out.address(),
        slotMemory.address(), slots.length, new KeyPages(pages.address(), 4, 8, stride));
    List.of(source, rotary, slotMemory, out, pages).forEach(NativeMemory::checkGuards);
    return ByteBuffer.allocate(out.size() + pages.size()).put(out.bytes()).put(pages.bytes()).array();
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void theFirstBadRowIsNamed(KeyKernel kernel) {
    byte[] data = gaussian(ElementType.BF16, 50 * 128, 1);
    ByteBuffer bytes = ByteBuffer.wrap(data).order(ByteOrder.LITTLE_ENDIAN);
    bytes.putShort(2 * (31 * 128 + 77), (short) 0x7FC0);
    bytes.putShort(2 * (40 * 128), (short) 0xFF80);
    for (int cols : new int[] {32, 128}) {
      int row = (31 * 128 + 77) / cols;
      assertThatThrownBy(() -> Mxfp4Rows.of(kernel, ScaleRule.CEIL, ElementType.BF16, data, cols))
          .isInstanceOf(NonFiniteRowException.class)
          .hasMessage("Invalid value: NaN at element %d of row %d, must be finite", (31 * 128 + 77) % cols, row);
    }

    LayerNorm norm = new LayerNorm(floats(128, 1), floats(128, 0), 1e-6f);
    KeyForm form = new KeyForm(128, norm, true, true, ScaleRule.CEIL);
    long[] slots = new long[50];
    Arrays.setAll(slots, i -> i);
    byte[] cache = new byte[4352];
    KeyPage page = new KeyPage(64, 128);
    assertThatThrownBy(() -> insert(kernel, form, ElementType.BF16, data, 50, slots, cache, 1, page, 4352))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: NaN at element 77 of row 31, must be finite");
    // tokens without a slot are not looked at
    slots[31] = -1;
    assertThatThrownBy(() -> insert(kernel, form, ElementType.BF16, data, 50, slots, cache, 1, page, 4352))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: -Infinity at element 0 of row 40, must be finite");
    bytes.putShort(2 * (40 * 128), (short) 0x7F7F);
    bytes.putShort(2 * (40 * 128 + 1), (short) 0x7F7F);
    assertThatThrownBy(() -> insert(kernel, form, ElementType.BF16, data, 50, slots, cache, 1, page, 4352))
        .isInstanceOfSatisfying(NonFiniteRowException.class, e -> assertThat(e.isNormalised()).isTrue())
        .hasMessage("Invalid value: NaN at element 0 of row 40 once it is normalised, must be finite");
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void aBadLatentRopeOrHeadIsNamed(KeyKernel kernel) {
    RmsNorm norm = new RmsNorm(floats(Fp8DsMla.LATENT, 1), 1e-6f);
    byte[] latents = gaussian(ElementType.F32, 20 * Fp8DsMla.LATENT, 1);
    byte[] rope = gaussian(ElementType.F32, 20 * Fp8DsMla.ROPE, 1);
    ByteBuffer.wrap(rope).order(ByteOrder.LITTLE_ENDIAN).putFloat(4 * (3 * 64 + 9), Float.NaN);
    assertThatThrownBy(() -> latents(kernel, norm, false, ElementType.F32, latents, rope, new long[] {0, 1, 2, 3}))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: NaN at element 9 of row 3, must be finite");
    ByteBuffer.wrap(latents).order(ByteOrder.LITTLE_ENDIAN).putFloat(4 * (7 * 512 + 1), Float.POSITIVE_INFINITY);
    assertThatThrownBy(() -> latents(kernel, norm, false, ElementType.F32, latents, rope, new long[] {0, 1, 2, 3}))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: Infinity at element 1 of row 7, must be finite");

    byte[] query = gaussian(ElementType.F16, 3 * 5 * 128, 1);
    ByteBuffer.wrap(query).order(ByteOrder.LITTLE_ENDIAN).putShort(2 * (11 * 128 + 8), (short) 0x7C00);
    NativeMemory q = NativeMemory.of(query, 0);
    NativeMemory w = NativeMemory.of(new byte[4 * 15], 0);
    NativeMemory out = NativeMemory.room(3 * 8 * 72, 0);
    assertThatThrownBy(() -> kernel.quantizeQuery(ScaleRule.CEIL, ElementType.F16, q.address(), ElementType.F32,
        w.address(), 1, 3, 5, 8, out.address(), out.address() + 3 * 8 * 64, out.address() + 3 * 8 * 68))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: Infinity at element 8 of row 11, must be finite");
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("kernels")
  void argumentsThatCannotBeAreRefusedBeforeAnythingIsWritten(KeyKernel kernel) {
    byte[] data = gaussian(ElementType.BF16, 4 * 128, 1);
    byte[] cache = new byte[4352];
    KeyPage page = new KeyPage(64, 128);
    assertRefused(() -> insert(kernel, KeyForm.plain(128), ElementType.BF16, data, 4, new long[] {0, 1, 64, 2}, cache, 1,
        page, 4352), "Invalid slot of token 2: 64, must be below 64, the cache's slots");
    assertRefused(() -> insert(kernel, KeyForm.plain(128), ElementType.BF16, data, 4, new long[] {9, 1, 9, 2}, cache, 1,
        page, 4352), "Invalid slot of token 2: 9, token 0 has it already; a slot holds one token");
    assertThatThrownBy(() -> insert(kernel, KeyForm.plain(128), ElementType.BF16, data, 4, new long[] {0}, cache, 1,
        page, 4351)).isInstanceOf(IllegalArgumentException.class)
        .hasMessageMatching("Invalid pages: 1 of 64 tokens, 4351 bytes apart, at address \\d+, must be at least 4352 "
            + "bytes apart");
    assertRefused(() -> Mxfp4Rows.of(kernel, ScaleRule.CEIL, ElementType.BF16, data, 40),
        "Invalid columns: 40, must be a positive multiple of 32");
    assertRefused(() -> kernel.quantizeQuery(ScaleRule.CEIL, ElementType.BF16, 1, ElementType.BF16, 1, 1, 1, 5, 4, 1, 1,
        1), "Invalid padded heads: 4, must be 5 at least, the heads that there are");
    assertThat(cache).containsOnly(0);
  }

  private static void assertRefused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  private static byte[] bytes(long[] slots) {
    ByteBuffer bytes = ByteBuffer.allocate(slots.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asLongBuffer().put(slots);
    return bytes.array();
  }

  private float[] floats(int size, float mean) {
    float[] values = new float[size];
    for (int i = 0; i < size; i++) {
      values[i] = mean + 0.2f * (float) random.nextGaussian();
    }

    return values;
  }

  /** Finite elements of any bits. */
  private byte[] randomBits(ElementType type, int elements) {
    byte[] data = new byte[elements * type.bytes()];
    random.nextBytes(data);
    int exponent = switch (type) {
      case BF16 -> 0x7F;
      case F16 -> 0x7C;
      case F32 -> 0x7F;
    };
    for (int end = type.bytes() - 1; end < data.length; end += type.bytes()) {
      if ((data[end] & exponent) == exponent) {
        data[end] ^= 0x10;
      }
    }

    return data;
  }

  private byte[] gaussian(ElementType type, int elements, double deviation) {
    ByteBuffer data = ByteBuffer.allocate(elements * type.bytes()).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < elements; i++) {
      // a few outliers, zeros of either sign
      double scale = random.nextInt(50) == 0 ? 30 * deviation : random.nextInt(50) == 0 ? -0.0 : deviation;
      float x = (float) (random.nextGaussian() * scale);
      switch (type) {
        case BF16 -> data.putShort(BFloat16.fromFloat(x));
        case F16 -> data.putShort(Float16.fromFloat(x));
        case F32 -> data.putFloat(x);
      }
    }

    return data.array();
  }
}
