package org.sparkfp4.kernels;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.sparkfp4.formats.Importance;
import org.sparkfp4.formats.ScaleChoice;
import org.sparkfp4.formats.ScaleSearch;
import org.sparkfp4.formats.Weighting;

/** A choice of scales, as the kernels and as the reference take it. */
final class SearchCase {
  static final SearchCase RTN = new SearchCase(ScaleSearch.RTN, null, null);

  private final ScaleSearch kind;
  private final Weighting weighting;
  private final byte[] importance;
  private final NativeMemory memory;

  private SearchCase(ScaleSearch kind, Weighting weighting, byte[] importance) {
    this.kind = kind;
    this.weighting = weighting;
    this.importance = importance;
    this.memory = importance == null ? null : NativeMemory.of(importance, 3);
  }

  static SearchCase of(ScaleSearch kind) {
    return new SearchCase(kind, null, null);
  }

  static SearchCase weighted(Weighting weighting, float... importance) {
    ByteBuffer bytes = ByteBuffer.allocate(Float.BYTES * importance.length).order(ByteOrder.LITTLE_ENDIAN);
    bytes.asFloatBuffer().put(importance);
    return new SearchCase(ScaleSearch.WEIGHTED, weighting, bytes.array());
  }

  /** E[x^2] of so many channels: from near one another to far apart, some of them 0, a block of 0. */
  static SearchCase diagonal(int cols, Random random) {
    float[] h = new float[cols];
    for (int i = 0; i < cols; i++) {
      boolean zero = i / 16 == 1 || random.nextInt(9) == 0;
      h[i] = zero ? 0 : (float) Math.exp(random.nextGaussian() * (1 + i / 16 % 4));
    }

    return weighted(Weighting.DIAGONAL, h);
  }

  /** E[x xT] of each block, of a few random x; a block of 0. */
  static SearchCase hessian(int cols, Random random) {
    float[] h = new float[16 * cols];
    for (int block = 0; block < cols / 16; block++) {
      for (int sample = 0; sample < 20 && block != 1; sample++) {
        float common = (float) random.nextGaussian();
        float[] x = new float[16];
        for (int i = 0; i < 16; i++) {
          x[i] = (common + (float) random.nextGaussian()) * (1 + i % 5);
        }

        for (int i = 0; i < 256; i++) {
          h[256 * block + i] += x[i / 16] * x[i % 16];
        }
      }
    }

    return weighted(Weighting.HESSIAN, h);
  }

  /** Every search there is, for a layer of so many columns. */
  static List<SearchCase> all(int cols, Random random) {
    List<SearchCase> all = new ArrayList<>();
    for (ScaleSearch kind : ScaleSearch.values()) {
      if (kind != ScaleSearch.WEIGHTED) {
        all.add(of(kind));
      }
    }

    all.add(diagonal(cols, random));
    all.add(hessian(cols, random));
    return all;
  }

  ScaleSearch kind() {
    return kind;
  }

  BlockSearch search() {
    return weighting == null ? BlockSearch.of(kind) : BlockSearch.weighted(weighting, memory.address());
  }

  ScaleChoice choice() {
    return weighting == null
        ? ScaleChoice.of(kind)
        : new ScaleChoice(kind, Importance.of(weighting, ByteBuffer.wrap(importance)));
  }

  @Override
  public String toString() {
    return kind.optionName() + (weighting == null ? "" : " " + weighting.optionName());
  }
}
