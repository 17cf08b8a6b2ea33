package org.sparkfp4.keys;

import java.util.Arrays;

/** The indexer's logits of a few queries and many keys: sum over heads of w * relu(q . k). */
final class IndexerLogits {
  private IndexerLogits() {}

  /**
   * The logits of one query.
   *
   * @param query [heads][D]
   * @param weights [heads]
   * @param keys [D][keys], transposed so that the inner loop runs over keys
   */
  static float[] of(float[][] query, float[] weights, float[][] keys) {
    int count = keys[0].length;
    float[] logits = new float[count];
    float[] dots = new float[count];
    for (int head = 0; head < query.length; head++) {
      Arrays.fill(dots, 0);
      for (int d = 0; d < keys.length; d++) {
        float q = query[head][d];
        float[] column = keys[d];
        for (int key = 0; key < count; key++) {
          dots[key] += q * column[key];
        }
      }

      float weight = weights[head];
      for (int key = 0; key < count; key++) {
        logits[key] += weight * Math.max(dots[key], 0);
      }
    }

    return logits;
  }

  /**
   * How many of some keys are chosen, where {@code wanted} would be of enough: half of them at most, since two choices of
   * nearly all have nearly all in common, whatever the logits are.
   */
  static int topOf(int keys, int wanted) {
    return Math.min(wanted, keys / 2);
  }

  /** Share of the {@code k} largest of one that are among the {@code k} largest of the other; k is 1 at least. */
  static double overlap(float[] a, float[] b, int k) {
    float leastOfA = kthLargest(a, k);
    float leastOfB = kthLargest(b, k);
    int common = 0;
    for (int i = 0; i < a.length; i++) {
      common += a[i] >= leastOfA && b[i] >= leastOfB ? 1 : 0;
    }

    return Math.min(1, common / (double) k);
  }

  private static float kthLargest(float[] values, int k) {
    float[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length - k];
  }
}
