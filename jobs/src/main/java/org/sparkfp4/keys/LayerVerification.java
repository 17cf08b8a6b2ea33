package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.Locale;

/**
 * How a layer of a cache compares with its source.
 *
 * @param layer its name
 * @param keys that were compared
 * @param differing keys whose bytes are not those of the reference
 * @param relativeError of the keys: root of squared error by square
 * @param difference of the logits: 1 - 2 sum(x y) / sum(x x + y y)
 * @param overlap of the tokens that the largest logits choose
 * @param topk how many those are
 */
public record LayerVerification(String layer, long keys, long differing, double relativeError, double difference,
    double overlap, int topk) implements Serializable {
  /** One line. */
  public String text() {
    return String.format(Locale.ROOT,
        "%s: %,d keys, %,d differ, relative error %.4f, logits differ by %.5f, top %d overlap %.3f", layer, keys,
        differing, relativeError, difference, topk, overlap);
  }
}
