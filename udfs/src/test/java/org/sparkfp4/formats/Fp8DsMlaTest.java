package org.sparkfp4.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.util.Arrays;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

class Fp8DsMlaTest {
  private final RmsNorm norm = new RmsNorm(ones(), 1e-6f);

  @Test
  void entriesHaveTheDocumentedPlaces() {
    Random random = new Random(3);
    ByteBuffer latent = bf16(Fp8DsMla.LATENT, i -> i >= 256 && i < 384 ? 0 : (float) random.nextGaussian());
    ByteBuffer rope = bf16(Fp8DsMla.ROPE, i -> i - 7.5f);
    ByteBuffer out = ByteBuffer.allocate(1024).order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer pages = ByteBuffer.allocate(2 * 3000).order(ByteOrder.LITTLE_ENDIAN);
    Fp8DsMla.insert(norm, false, ElementType.BF16, latent, rope, 1, out, LongBuffer.wrap(new long[] {6}), pages, 2, 4,
        3000);
    int at = 3000 + 2 * 656;
    assertThat(pages.getFloat(at + 512 + 8)).isEqualTo(Float.MIN_NORMAL);
    assertThat(pages.getShort(at + 528 + 2)).isEqualTo(BFloat16.fromFloat(-6.5f));
    float[] values = new float[Fp8DsMla.LATENT];
    float[] rotary = new float[Fp8DsMla.ROPE];
    Fp8DsMla.decode(pages, at, values, rotary);
    assertThat(rotary[63]).isEqualTo(55.5f);
    for (int i = 0; i < values.length; i++) {
      float normalised = BFloat16.toFloat(out.getShort(2 * i));
      assertThat(Math.abs(values[i] - normalised)).isLessThanOrEqualTo(Math.abs(normalised) / 14 + 2e-3f);
    }

    for (int tile : new int[] {0, 1, 3}) {
      int largest = 0;
      for (int i = 0; i < 128; i++) {
        largest = Math.max(largest, pages.get(at + 128 * tile + i) & 0x7F);
      }

      assertThat(largest).isEqualTo(0x7E);
    }

    assertThat(Arrays.copyOf(pages.array(), at)).containsOnly(0);
    assertThat(Arrays.copyOfRange(pages.array(), at + 656, 6000)).containsOnly(0);
  }

  /**
   * vLLM's two writers divide by 448 and multiply by the nearest float to 1 / 448: a scale is that of the first, and at
   * most one unit in the last place from that of the second, which is why bytes of caches are not comparable in general.
   */
  @Test
  void scalesAreWithinAnUlpOfTheReciprocalsProduct() {
    int tokens = 500;
    Random random = new Random(8);
    float[] sizes = new float[Fp8DsMla.LATENT];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = (float) Math.scalb(1 + random.nextDouble(), 20 - 10 * (i / Fp8DsMla.TILE));
    }

    ByteBuffer latent = f32(tokens * Fp8DsMla.LATENT, random);
    ByteBuffer out = ByteBuffer.allocate(latent.capacity()).order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer pages = ByteBuffer.allocate(tokens * Fp8DsMla.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    Fp8DsMla.insert(new RmsNorm(sizes, 1e-6f), false, ElementType.F32, latent,
        f32(tokens * Fp8DsMla.ROPE, random), tokens, out, LongBuffer.wrap(LongStream.range(0, tokens).toArray()), pages, 1,
        tokens, pages.capacity());

    int apart = 0;
    for (int tile = 0; tile < tokens * 4; tile++) {
      float amax = 0;
      for (int i = 0; i < Fp8DsMla.TILE; i++) {
        amax = Math.max(amax, Math.abs(out.getFloat((tile * Fp8DsMla.TILE + i) * Float.BYTES)));
      }

      float scale = pages.getFloat(tile / 4 * Fp8DsMla.BYTES + Fp8DsMla.LATENT + tile % 4 * Float.BYTES);
      int distance = Math.abs(Float.floatToIntBits(scale) - Float.floatToIntBits(amax * (1 / 448f)));
      assertThat(scale).isEqualTo(amax / 448);
      assertThat(distance).as("units in the last place at amax %s", amax).isLessThanOrEqualTo(1);
      apart += distance;
    }

    assertThat(apart).as("scales that are not the same").isBetween(tokens / 10, tokens * 4 - tokens / 10);
  }

  private static ByteBuffer f32(int size, Random random) {
    ByteBuffer bytes = ByteBuffer.allocate(size * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < size; i++) {
      bytes.putFloat(i * Float.BYTES, (float) random.nextGaussian());
    }

    return bytes;
  }

  @Test
  void whatOverflowsOnItsWayIsRefused() {
    ByteBuffer latent = bf16(Fp8DsMla.LATENT, i -> i == 5 ? 3e38f : 1);
    ByteBuffer rope = bf16(Fp8DsMla.ROPE, i -> i == 6 ? Float.NaN : 1);
    ByteBuffer out = ByteBuffer.allocate(1024);
    ByteBuffer pages = ByteBuffer.allocate(656);
    // the squares overflow, so that all is multiplied by zero: finite, as in any arithmetic of binary32
    assertThatThrownBy(() -> Fp8DsMla.insert(norm, false, ElementType.BF16, latent, rope, 1, out,
        LongBuffer.wrap(new long[] {0}), pages, 1, 1, 656))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: NaN at element 6 of row 0, must be finite");
    float[] huge = ones();
    huge[5] = 3e38f;
    assertThatThrownBy(() -> new RmsNorm(huge, 1e-6f).apply(ElementType.BF16, bf16(512, i -> i == 5 ? 2 : 0.5f), 1, out))
        .isInstanceOf(NonFiniteRowException.class)
        .hasMessage("Invalid value: Infinity at element 5 of row 0 once it is normalised, must be finite");
  }

  private static ByteBuffer bf16(int size, IntFunction<Float> value) {
    ByteBuffer bytes = ByteBuffer.allocate(2 * size).order(ByteOrder.LITTLE_ENDIAN);
    for (int i = 0; i < size; i++) {
      bytes.putShort(2 * i, BFloat16.fromFloat(value.apply(i)));
    }

    return bytes;
  }

  private static float[] ones() {
    float[] ones = new float[Fp8DsMla.LATENT];
    Arrays.fill(ones, 1);
    return ones;
  }
}
