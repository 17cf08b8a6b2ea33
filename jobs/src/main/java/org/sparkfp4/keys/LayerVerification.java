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
 * @param overlap of the tokens that the largest logits choose; nothing where there are none
 * @param topk how many those are; 0 where there are too few keys to choose from
 * @param damage what of the file is not as its checksums or the count of the source's keys say; empty where nothing is
 */
public record LayerVerification(String layer, long keys, long differing, double relativeError, double difference,
    double overlap, int topk, String damage) implements Serializable {
  /** One line, and one of damage. */
  public String text() {
    String compared = String.format(Locale.ROOT,
        "%s: %,d keys, %,d differ, relative error %.4f, logits differ by %.5f, %s", layer, keys, differing, relativeError,
        difference, choice());
    return damage.isEmpty() ? compared : compared + System.lineSeparator() + "  damaged: " + damage;
  }

  private String choice() {
    return topk == 0
        ? "too few keys to choose the top of"
        : String.format(Locale.ROOT, "top %d overlap %.3f", topk, overlap);
  }
}
