package org.sparkfp4.verify;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** What a verification saw and found. */
public final class VerificationResult {
  /** Differences that are printed; the rest is counted. */
  private static final int PRINTED = 20;

  private final int shards;
  private final long bytes;
  private final int copies;
  private final List<LayerCheck> layers;
  private final Differences differences;

  VerificationResult(int shards, long bytes, int copies, List<LayerCheck> layers, Differences differences) {
    this.shards = shards;
    this.bytes = bytes;
    this.copies = copies;
    this.layers = List.copyOf(layers);
    this.differences = differences;
  }

  public boolean isGood() {
    return differences.count() == 0;
  }

  /** Bytes of the shards that were read. */
  public long bytes() {
    return bytes;
  }

  /** Relative error, in the Frobenius norm, of all quantized layers together. */
  public double relativeError() {
    double squares = layers.stream().mapToDouble(LayerCheck::sumSquares).sum();
    double errors = layers.stream().mapToDouble(LayerCheck::squaredError).sum();
    return errors == 0 ? 0 : Math.sqrt(errors / squares);
  }

  /** The differences in words, as many as are kept. */
  public List<String> differences() {
    return differences.first();
  }

  /** One line a layer: its relative error and its name, the largest error first. */
  public List<String> layerLines() {
    return layers.stream()
        .sorted(Comparator.comparingDouble(LayerCheck::relativeError).reversed().thenComparing(LayerCheck::module))
        .map(layer -> String.format(Locale.ROOT, "%.6f %s", layer.relativeError(), layer.module()))
        .toList();
  }

  /** The result for a reader. */
  public String text() {
    StringBuilder text = new StringBuilder();
    text.append(String.format(Locale.ROOT, "Read %,d bytes in %d shards%n", bytes, shards));
    Optional<LayerCheck> worst = layers.stream().max(Comparator.comparingDouble(LayerCheck::relativeError));
    worst.ifPresent(layer -> text.append(String.format(
        Locale.ROOT, "Decoded %,d layers: relative error %.4f, at worst %.4f in %s%n",
        layers.size(), relativeError(), layer.relativeError(), layer.module())));
    List<LayerCheck> sampled = layers.stream().filter(LayerCheck::sampled).toList();
    if (!sampled.isEmpty()) {
      text.append(String.format(
          Locale.ROOT, "Quantized again and compared: %,d layers, %s%s%n",
          sampled.size(), sampled.get(0).module(), sampled.size() == 1 ? "" : " and so on"));
    }

    text.append(String.format(Locale.ROOT, "Compared with the source byte for byte: %,d tensors%n", copies));
    if (isGood()) {
      return text.append("No difference found").toString();
    }

    text.append(String.format(Locale.ROOT, "%,d differences found:", differences.count()));
    differences.first().stream().limit(PRINTED).forEach(line -> text.append(String.format("%n  %s", line)));
    if (differences.count() > PRINTED) {
      text.append(String.format(Locale.ROOT, "%n  … and %,d more", differences.count() - PRINTED));
    }

    return text.toString();
  }
}
