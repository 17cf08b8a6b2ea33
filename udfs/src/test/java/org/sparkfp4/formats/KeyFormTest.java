package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.Random;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.assertj.core.data.Offset;
import org.junit.jupiter.api.Test;

class KeyFormTest {
  private static final int DIM = 128;
  private static final int TOKENS = 20_000;

  private final Random random = new Random(11);

  @Test
  void layerNormIsThatOfDoublesButForAFewCodes() {
    float[] weight = gaussian(1, 0.2);
    float[] bias = gaussian(0, 0.2);
    LayerNorm norm = new LayerNorm(weight, bias, 1e-6f);
    KeyForm form = new KeyForm(DIM, norm, false, false, ScaleRule.CEIL);
    ByteBuffer codes = ByteBuffer.allocate(DIM);
    ByteBuffer scales = ByteBuffer.allocate(8);
    long flips = 0;
    for (int token = 0; token < TOKENS; token++) {
      float[] key = gaussian(0.3, 2);
      for (int i = 0; i < DIM; i++) {
        key[i] = BFloat16.round(key[i]);
      }

      float[] expected = inDoubles(key, weight, bias, 1e-6f);
      form.prepare(key);
      double largest = 0;
      for (int i = 0; i < DIM; i++) {
        largest = Math.max(largest, Math.abs(expected[i]));
      }

      for (int i = 0; i < DIM; i++) {
        assertThat(Math.abs(key[i] - expected[i])).isLessThan((float) (largest * 1e-6));
      }

      Mxfp4Codec.encodeRow(ScaleRule.CEIL, key, token, codes, 0, scales, 0);
      Mxfp4Codec.encodeRow(ScaleRule.CEIL, expected, token, codes, DIM / 2, scales, 4);
      for (int i = 0; i < DIM / 2; i++) {
        int difference = codes.get(i) ^ codes.get(DIM / 2 + i);
        flips += ((difference & 0xF) == 0 ? 0 : 1) + ((difference & 0xF0) == 0 ? 0 : 1);
      }
    }

    // two and a half million codes
    assertThat(flips).isLessThan(60);
  }

  private static float[] inDoubles(float[] key, float[] weight, float[] bias, double eps) {
    double mean = 0;
    for (float x : key) {
      mean += x;
    }

    mean /= key.length;
    double variance = 0;
    for (float x : key) {
      variance += (x - mean) * (x - mean);
    }

    double r = 1 / Math.sqrt(variance / key.length + eps);
    float[] normalised = new float[key.length];
    for (int i = 0; i < key.length; i++) {
      normalised[i] = (float) ((key[i] - mean) * r * weight[i] + bias[i]);
    }

    return normalised;
  }

  @Test
  void theRotationIsTheHadamardMatrixAndItsOwnInverse() {
    for (int dim = 32; dim <= KeyForm.MAX_DIM; dim *= 2) {
      KeyForm form = new KeyForm(dim, null, false, true, ScaleRule.CEIL);
      float[] unit = new float[dim];
      unit[dim - 3] = 1;
      form.prepare(unit);
      for (int i = 0; i < dim; i++) {
        float sign = Integer.bitCount(i & (dim - 3)) % 2 == 0 ? 1 : -1;
        assertThat(unit[i]).isEqualTo(sign * (float) (1 / Math.sqrt(dim)));
      }

      form.prepare(unit);
      for (int i = 0; i < dim; i++) {
        assertThat(unit[i]).isCloseTo(i == dim - 3 ? 1 : 0, Offset.offset(1e-6f));
      }
    }
  }

  @Test
  void eachStepIsRoundedWhereAskedFor() {
    LayerNorm norm = new LayerNorm(gaussian(1, 0.2), gaussian(0, 0.2), 1e-5f);
    float[] key = gaussian(0, 1);
    float[] stepwise = key.clone();
    norm.apply(stepwise);
    round(stepwise);
    Hadamard.rotate(stepwise);
    round(stepwise);
    new KeyForm(DIM, norm, true, true, ScaleRule.CEIL).prepare(key);
    assertThat(key).isEqualTo(stepwise);
  }

  private static void round(float[] x) {
    for (int i = 0; i < x.length; i++) {
      x[i] = BFloat16.toFloat(BFloat16.fromFloat(x[i]));
    }
  }

  @Test
  void sumsAreAddedInTheDocumentedOrder() {
    float[] terms = new float[96];
    // lane 0: (2^24 + 1) + 1 loses both ones, lane 8's pair of ones does not
    terms[0] = 0x1p24f;
    terms[1] = 1;
    terms[32] = 1;
    assertThat(LaneSum.of(terms)).isEqualTo(0x1p24f);
    terms[1] = 0;
    terms[32] = 0;
    terms[16] = 1;
    terms[17] = 1;
    assertThat(LaneSum.of(terms)).isEqualTo(0x1p24f + 2);
  }

  @Test
  void pagesHaveCodesThenScales() {
    KeyPage page = new KeyPage(64, DIM);
    assertThat(page.tokenBytes()).isEqualTo(68);
    assertThat(page.bytes()).isEqualTo(4352);
    assertThat(new KeyPage(32, DIM).bytes()).isEqualTo(2176);
    assertThat(page.codesAt(3)).isEqualTo(192);
    assertThat(page.scalesAt(3)).isEqualTo(64 * 64 + 12);
  }

  @Test
  void keysOfSlotsAreDecodedWhereTheyAre() {
    KeyPage page = new KeyPage(32, DIM);
    float[] key = gaussian(0, 1);
    ByteBuffer keys = ByteBuffer.allocate(2 * DIM * 4).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < DIM; i++) {
      keys.putFloat(i * 4, key[i]);
      keys.putFloat((DIM + i) * 4, -key[i]);
    }

    ByteBuffer pages = ByteBuffer.allocate(3 * 4096);
    KeyCache.insert(KeyForm.plain(DIM), ElementType.F32, keys, 2, LongBuffer.wrap(new long[] {70, 5}), pages, 3, page,
        4096);
    float[] there = new float[DIM];
    float[] negative = new float[DIM];
    page.decode(pages, 4096, 70, there);
    page.decode(pages, 4096, 5, negative);
    for (int i = 0; i < DIM; i++) {
      assertThat(there[i]).isCloseTo(key[i], Offset.offset(0.7f));
      assertThat(negative[i]).isEqualTo(-there[i]);
    }

    page.decode(pages, 4096, 71, there);
    assertThat(there).containsOnly(0f);
  }

  @Test
  void slotsThatCannotBeAreRefused() {
    assertThat(SlotMapping.check(LongBuffer.wrap(new long[] {-1, 4, 2, -1, 0}), 9, 5)).isEqualTo(5);
    assertThat(SlotMapping.check(LongBuffer.wrap(new long[] {3, 1, 9}), 2, 5)).isEqualTo(2);
    assertThatThrownBy(() -> SlotMapping.check(LongBuffer.wrap(new long[] {0, 5}), 2, 5))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid slot of token 1: 5, must be below 5, the cache's slots");
    assertThatThrownBy(() -> SlotMapping.check(LongBuffer.wrap(new long[] {3, -1, 0, 3}), 4, 5))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid slot of token 3: 3, token 0 has it already; a slot holds one token");
  }

  @Test
  void formsThatCannotBeAreRefused() {
    float[] ones = new float[DIM];
    Arrays.fill(ones, 1);
    assertRefused(() -> new KeyForm(80, null, false, false, ScaleRule.CEIL),
        "Invalid key size: 80, must be a multiple of 32 up to 1024");
    assertRefused(() -> new KeyForm(96, null, false, true, ScaleRule.CEIL),
        "Invalid key size: 96, must be a power of two for the Hadamard transform");
    assertRefused(() -> new KeyForm(64, new LayerNorm(ones, ones, 1e-6f), false, false, ScaleRule.CEIL),
        "Invalid norm: 128 weights for keys of 64 values, must be as many");
    assertRefused(() -> new LayerNorm(ones, ones, 0), "Invalid eps: 0.0, must be positive and finite");
    assertRefused(() -> new LayerNorm(ones, new float[1], 1), "Invalid norm: 128 weights and 1 biases, must be as many");
    float[] bad = ones.clone();
    bad[7] = Float.NaN;
    assertRefused(() -> new RmsNorm(bad, 1e-6f), "Invalid norm: its weight is NaN at element 7, must be finite");
  }

  private static void assertRefused(ThrowingCallable call, String message) {
    assertThatThrownBy(call).isInstanceOf(IllegalArgumentException.class).hasMessage(message);
  }

  private float[] gaussian(double mean, double deviation) {
    float[] values = new float[DIM];
    for (int i = 0; i < DIM; i++) {
      values[i] = (float) (mean + deviation * random.nextGaussian());
    }

    return values;
  }
}
