package org.sparkfp4.calibration;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BlockAmaxHistogramTest {
  @Test
  void everyMagnitudeIsWithinItsBin() {
    List<Float> bounds = BlockAmaxHistogram.bounds();
    assertThat(bounds).hasSize(BlockAmaxHistogram.BINS).isSorted();
    Random random = new Random(1);
    for (int i = 0; i < 1_000_000; i++) {
      float amax = Float.intBitsToFloat(random.nextInt() & 0x7FFFFFFF);
      if (Float.isFinite(amax)) {
        int bin = BlockAmaxHistogram.bin(amax);
        assertThat(amax >= bounds.get(bin)).isTrue();
        assertThat(bin == BlockAmaxHistogram.BINS - 1 || amax < bounds.get(bin + 1)).isTrue();
      }
    }

    assertThat(BlockAmaxHistogram.bin(0)).isZero();
    assertThat(BlockAmaxHistogram.bin(Float.MAX_VALUE)).isEqualTo(BlockAmaxHistogram.BINS - 1);
    for (int bin = 1; bin < BlockAmaxHistogram.BINS - 1; bin++) {
      assertThat(BlockAmaxHistogram.bin(bounds.get(bin))).isEqualTo(bin);
      assertThat(bounds.get(bin + 1) / bounds.get(bin)).isBetween(1.06f, 1.125f);
    }
  }

  @Test
  void percentilesAreWithinABinOfTheTrueOnes() {
    Random random = new Random(2);
    float[] values = new float[100_000];
    long[] histogram = new long[BlockAmaxHistogram.BINS];
    for (int i = 0; i < values.length; i++) {
      values[i] = (float) Math.exp(3 * random.nextGaussian());
      histogram[BlockAmaxHistogram.bin(values[i])]++;
    }

    // blocks of zeros are not counted
    histogram[0] += 1_000_000;
    java.util.Arrays.sort(values);
    float amax = values[values.length - 1];
    float least = values[values.length / 100];
    assertThat(BlockAmaxHistogram.atLeast(histogram, 0.01)).isBetween(least / 1.13f, least);
    float most = values[(int) (values.length * 0.9999)];
    assertThat(BlockAmaxHistogram.atMost(histogram, 0.9999, amax)).isBetween(most, most * 1.13f);
    assertThat(BlockAmaxHistogram.atMost(histogram, 1, amax)).isEqualTo(amax);
    assertThat(BlockAmaxHistogram.atMost(new long[BlockAmaxHistogram.BINS], 0.5, 0)).isZero();
  }
}
