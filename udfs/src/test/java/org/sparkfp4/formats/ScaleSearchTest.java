package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class ScaleSearchTest {
  private static final int BLOCKS = 200;

  /** Its scale is best_amax / 6, normalised by 448; of equal losses that kernel may have taken another. */
  @Test
  void modelOptsSweep() {
    GoldenFile golden = GoldenFile.open("nvfp4_sweep_modelopt");
    float[] w = floats(golden.tensor("w"));
    ByteBuffer best = golden.tensor("best_amax").data();
    float globalScale = Nvfp4Recipe.MODELOPT.globalScale(golden.tensor("global_amax").scalar(), ElementType.BF16);
    byte[] scales = encode(Nvfp4Recipe.MODELOPT, ScaleChoice.of(ScaleSearch.SWEEP), w, globalScale).scales();
    BlockLoss loss = new BlockLoss();
    int same = 0;
    for (int block = 0; block < scales.length; block++) {
      float theirs = best.getFloat(best.position() + 4 * block);
      float ours = Nvfp4Recipe.MODELOPT.dequantFactor(scales[block], globalScale);
      if (Math.abs(6 * ours - theirs) <= 2 * Math.ulp(theirs)) {
        same++;
      } else {
        float[] values = Arrays.copyOfRange(w, 16 * block, 16 * block + 16);
        assertThat(loss.of(values, ours)).as("block %d: %s, theirs %s", block, ours, theirs / 6)
            .isEqualTo(loss.of(values, theirs / 6));
      }
    }

    assertThat(same).isGreaterThan(scales.length * 99 / 100);
  }

  private static float[] floats(GoldenFile.Tensor tensor) {
    float[] values = new float[tensor.data().remaining() / 2];
    ElementType.BF16.load(tensor.data(), tensor.data().position(), values);
    return values;
  }

  @ParameterizedTest
  @EnumSource
  void sweepTakesTheLeastLossAndTheLowestOfEqualOnes(Nvfp4Recipe recipe) {
    for (float[] w : new float[][] {gaussian(3, 1), lattice(4), sparse(5), alike(6)}) {
      float globalScale = ScaleSearch.SWEEP.globalScale(recipe, amax(w), ElementType.F32);
      byte[] scales = encode(recipe, ScaleChoice.of(ScaleSearch.SWEEP), w, globalScale).scales();
      PlainSearch plain = new PlainSearch(recipe, globalScale, null);
      for (int block = 0; block < scales.length; block++) {
        assertThat(scales[block]).as("block %d", block).isEqualTo((byte) plain.best(w, block));
      }
    }
  }

  @ParameterizedTest
  @EnumSource
  void weightedTakesTheLeastWeighedLoss(Weighting weighting) {
    Random random = new Random(7);
    float[] w = gaussian(8, 0.1f);
    ByteBuffer bytes = importance(weighting, w.length / 16 / 10, random);
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      ScaleChoice choice = new ScaleChoice(ScaleSearch.WEIGHTED, Importance.of(weighting, bytes));
      float globalScale = ScaleSearch.WEIGHTED.globalScale(recipe, amax(w), ElementType.F32);
      byte[] scales = encode(recipe, choice, w, globalScale).scales();
      float[] h = new float[bytes.remaining() / 4];
      bytes.slice().order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer().get(h);
      PlainSearch plain = new PlainSearch(recipe, globalScale, h);
      for (int block = 0; block < scales.length; block++) {
        assertThat(scales[block]).as("block %d", block).isEqualTo((byte) plain.best(w, block));
      }
    }
  }

  /** [rows, cols] whose columns' importance is the same in each row; one block of it is all zeros. */
  private static ByteBuffer importance(Weighting weighting, int blocks, Random random) {
    ByteBuffer bytes = ByteBuffer.allocate((int) weighting.values(16L * blocks) * 4).order(ByteOrder.LITTLE_ENDIAN);
    for (int block = 0; block < blocks; block++) {
      float[] x = new float[16];
      for (int i = 0; i < 16; i++) {
        x[i] = block == 2 ? 0 : (float) Math.exp(2 * random.nextGaussian());
      }

      for (int i = 0; i < 16; i++) {
        if (weighting == Weighting.DIAGONAL) {
          bytes.putFloat(x[i]);
        } else {
          for (int j = 0; j < 16; j++) {
            bytes.putFloat(x[i] * x[j] * (i == j ? 1.5f : 0.5f));
          }
        }
      }
    }

    return bytes.flip();
  }

  @ParameterizedTest
  @EnumSource
  void equalWeightsChangeNothing(Weighting weighting) {
    float[] w = gaussian(9, 1);
    ByteBuffer identity = ByteBuffer.allocate((int) weighting.values(16) * 4).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < weighting.values(16); i++) {
      identity.putFloat(4 * i, weighting == Weighting.DIAGONAL || i / 16 == i % 16 ? 1 : 0);
    }

    float globalScale = ScaleSearch.SWEEP.globalScale(Nvfp4Recipe.MODELOPT, amax(w), ElementType.F32);
    ScaleChoice weighted = new ScaleChoice(ScaleSearch.WEIGHTED, Importance.of(weighting, identity));
    assertSame(encode(Nvfp4Recipe.MODELOPT, weighted, w, globalScale),
        encode(Nvfp4Recipe.MODELOPT, ScaleChoice.of(ScaleSearch.SWEEP), w, globalScale));
  }

  private static void assertSame(Encoded a, Encoded b) {
    assertThat(a.packed()).isEqualTo(b.packed());
    assertThat(a.scales()).isEqualTo(b.scales());
    assertThat(a.sums().squaredErrors()).isEqualTo(b.sums().squaredErrors());
  }

  @ParameterizedTest
  @EnumSource(names = {"FOUR_OVER_SIX", "SWEEP"})
  void noBlockErrsMoreThanRounded(ScaleSearch search) {
    BlockLoss loss = new BlockLoss();
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      for (float[] w : new float[][] {gaussian(10, 1), lattice(11), sparse(12), alike(13)}) {
        float globalScale = search.globalScale(recipe, amax(w), ElementType.BF16);
        byte[] searched = encode(recipe, ScaleChoice.of(search), w, globalScale).scales();
        byte[] rounded = encode(recipe, ScaleChoice.RTN, w, globalScale).scales();
        int better = 0;
        for (int block = 0; block < BLOCKS; block++) {
          float[] values = Arrays.copyOfRange(w, 16 * block, 16 * block + 16);
          float now = loss.of(values, recipe.dequantFactor(searched[block], globalScale));
          float before = loss.of(values, recipe.dequantFactor(rounded[block], globalScale));
          assertThat(now).isLessThanOrEqualTo(before);
          better += now < before ? 1 : 0;
        }

        assertThat(better).isPositive();
      }
    }
  }

  @Test
  void fourOverSixTakesOneOfTwo() {
    float[] w = gaussian(14, 1);
    float globalScale = amax(w) / 1536;
    byte[] scales = encode(Nvfp4Recipe.MODELOPT, ScaleChoice.of(ScaleSearch.FOUR_OVER_SIX), w, globalScale).scales();
    int fours = 0;
    for (int block = 0; block < BLOCKS; block++) {
      float amax = amax(Arrays.copyOfRange(w, 16 * block, 16 * block + 16));
      int six = E4M3.encode(amax / (6 * globalScale));
      int four = E4M3.encode(amax / (4 * globalScale));
      assertThat((int) scales[block]).isIn(six, four);
      fours += scales[block] == four ? 1 : 0;
    }

    assertThat(fours).isBetween(BLOCKS / 5, BLOCKS * 4 / 5);
    // 4 and 6 err alike where everything is 0 but one.
    float[] one = new float[16];
    one[3] = 6;
    assertThat(encode(Nvfp4Recipe.MODELOPT, ScaleChoice.of(ScaleSearch.FOUR_OVER_SIX), one, 1f / 256).scales())
        .containsExactly((byte) E4M3.encode(256));
  }

  @ParameterizedTest
  @ValueSource(floats = {0, -0f, 0x1.fffffep-51f, 0x1.000002p60f, 0x1p120f})
  void blocksOutOfRangeAreRounded(float largest) {
    float[] w = new float[32];
    Arrays.fill(w, largest / 3);
    w[5] = largest;
    w[16] = Math.max(1, largest);
    for (Nvfp4Recipe recipe : Nvfp4Recipe.values()) {
      float globalScale = ScaleSearch.SWEEP.globalScale(recipe, amax(w), ElementType.F32);
      byte rounded = encode(recipe, ScaleChoice.RTN, w, globalScale).scales()[0];
      for (ScaleSearch search : new ScaleSearch[] {ScaleSearch.FOUR_OVER_SIX, ScaleSearch.SWEEP}) {
        assertThat(encode(recipe, ScaleChoice.of(search), w, globalScale).scales()[0]).isEqualTo(rounded);
      }
    }
  }

  /** Losses overflow for every scale. */
  @Test
  void blocksWithoutAFiniteLossAreRounded() {
    float[] w = gaussian(15, 1);
    ByteBuffer huge = ByteBuffer.allocate(64).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < 16; i++) {
      huge.putFloat(4 * i, Float.MAX_VALUE);
      w[i] *= 0x1p50f;
    }

    ScaleChoice choice = new ScaleChoice(ScaleSearch.WEIGHTED, Importance.of(Weighting.DIAGONAL, huge));
    float globalScale = amax(w) / 1536;
    assertThat(encode(Nvfp4Recipe.MODELOPT, choice, w, globalScale).scales()[0])
        .isEqualTo(encode(Nvfp4Recipe.MODELOPT, ScaleChoice.RTN, w, globalScale).scales()[0]);
  }

  @Test
  void globalScales() {
    assertThat(ScaleSearch.RTN.globalScale(Nvfp4Recipe.MODELOPT, 6, ElementType.BF16)).isEqualTo(6f / 2688);
    for (ScaleSearch search : new ScaleSearch[] {ScaleSearch.FOUR_OVER_SIX, ScaleSearch.SWEEP, ScaleSearch.WEIGHTED}) {
      assertThat(search.globalScale(Nvfp4Recipe.MODELOPT, 5, ElementType.BF16)).isEqualTo(5f / 1536);
      assertThat(search.globalScale(Nvfp4Recipe.COMPRESSED_TENSORS, 5, ElementType.BF16)).isEqualTo(1536f / 5);
      assertThat(search.globalScale(Nvfp4Recipe.MODELOPT, 0, ElementType.BF16)).isEqualTo(1f / 2688);
      assertThat(search.globalScale(Nvfp4Recipe.COMPRESSED_TENSORS, 0, ElementType.F32)).isEqualTo(1f);
    }

    assertThatThrownBy(() -> ScaleSearch.SWEEP.globalScale(Nvfp4Recipe.MODELOPT, -1, ElementType.BF16))
        .isInstanceOf(IllegalArgumentException.class).hasMessage("Invalid amax: -1.0, must be finite and not negative");
  }

  @Test
  void names() {
    for (ScaleSearch search : ScaleSearch.values()) {
      assertThat(ScaleSearch.named(search.optionName())).isEqualTo(search);
    }

    assertThatThrownBy(() -> ScaleSearch.named("swept")).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid scale search: swept; known are rtn, four-over-six, sweep, weighted");
    assertThat(Weighting.named("hessian")).isEqualTo(Weighting.HESSIAN);
    assertThatThrownBy(() -> Weighting.named("full")).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid weighting: full; known are diagonal, hessian");
  }

  @Test
  void importanceThatCannotBe() {
    ByteBuffer bytes = ByteBuffer.allocate(1024).order(ByteOrder.LITTLE_ENDIAN);
    refused(Weighting.DIAGONAL, bytes.slice(0, 60), "Invalid importance: 60 bytes, must be 64 for each block of 16 ");
    refused(Weighting.HESSIAN, bytes.slice(0, 64), "Invalid importance: 64 bytes, must be 1024 for each block of 16 ");
    bytes.putFloat(4 * 33, -1e-9f);
    refused(Weighting.DIAGONAL, bytes, "Invalid importance: -1.0E-9 of column 33, must be finite and not negative");
    // Beside the diagonal any finite value may stand.
    assertThat(Importance.of(Weighting.HESSIAN, bytes).weighting()).isEqualTo(Weighting.HESSIAN);
    bytes.putFloat(4 * 34, Float.NaN);
    refused(Weighting.HESSIAN, bytes, "Invalid importance: NaN of column 2, must be finite and not negative");
    assertThatThrownBy(() -> ScaleChoice.of(ScaleSearch.WEIGHTED)).isInstanceOf(IllegalArgumentException.class)
        .hasMessage("Invalid scale search: weighted without importance");
  }

  private static void refused(Weighting weighting, ByteBuffer bytes, String message) {
    assertThatThrownBy(() -> Importance.of(weighting, bytes)).isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining(message);
  }

  private static Encoded encode(Nvfp4Recipe recipe, ScaleChoice choice, float[] w, float globalScale) {
    byte[] packed = new byte[w.length / 2];
    byte[] scales = new byte[w.length / 16];
    ErrorSums sums = new ErrorSums();
    Nvfp4.encode(recipe, choice, ElementType.F32, Encoded.f32(w), w.length / 16, 16, globalScale,
        ByteBuffer.wrap(packed), ByteBuffer.wrap(scales), sums);
    return new Encoded(globalScale, packed, scales, sums);
  }

  private static float[] gaussian(int seed, float deviation) {
    Random random = new Random(seed);
    float[] w = new float[16 * BLOCKS];
    for (int i = 0; i < w.length; i++) {
      w[i] = (float) (deviation * random.nextGaussian() * Math.exp(random.nextGaussian() / 4));
    }

    return w;
  }

  /** Few values, which make equal losses. */
  private static float[] lattice(int seed) {
    Random random = new Random(seed);
    float[] w = new float[16 * BLOCKS];
    for (int i = 0; i < w.length; i++) {
      w[i] = (random.nextInt(25) - 12) * 0.25f;
    }

    return w;
  }

  /** One value or two in a block, of any magnitude. */
  private static float[] sparse(int seed) {
    Random random = new Random(seed);
    float[] w = new float[16 * BLOCKS];
    for (int i = 0; i < 2 * BLOCKS; i++) {
      w[i / 2 * 16 + random.nextInt(16)] = Math.scalb(1 + random.nextFloat(), -random.nextInt(20));
    }

    return w;
  }

  private static float[] alike(int seed) {
    Random random = new Random(seed);
    float[] w = new float[16 * BLOCKS];
    for (int block = 0; block < BLOCKS; block++) {
      Arrays.fill(w, 16 * block, 16 * block + 16, BFloat16.round(random.nextFloat()));
    }

    return w;
  }

  private static float amax(float[] w) {
    float amax = 0;
    for (float x : w) {
      amax = Math.max(amax, Math.abs(x));
    }

    return amax;
  }
}
