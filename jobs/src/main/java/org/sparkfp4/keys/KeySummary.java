package org.sparkfp4.keys;

import java.util.Locale;
import org.apache.hadoop.fs.Path;

/**
 * What a run makes.
 *
 * @param output its folder
 * @param layers of the cache
 * @param keys that have a slot, in all layers
 * @param pages of keys
 * @param ranges that are made in parallel
 * @param bytes of all tensors
 */
public record KeySummary(Path output, int layers, long keys, long pages, int ranges, long bytes) {
  static KeySummary of(KeyPlan plan, Path output) {
    return new KeySummary(output, plan.layers().size(), plan.layers().stream().mapToLong(CacheLayer::cached).sum(),
        plan.tensors().stream().filter(tensor -> tensor.kind() == CacheTensor.Kind.KEYS).mapToLong(CacheTensor::units)
            .sum(),
        plan.ranges().size(), plan.bytes());
  }

  /** One line. */
  public String text() {
    return String.format(Locale.ROOT, "%s: %,d keys of %d %s in %,d pages, %,d bytes", output, keys, layers,
        layers == 1 ? "layer" : "layers", pages, bytes);
  }
}
