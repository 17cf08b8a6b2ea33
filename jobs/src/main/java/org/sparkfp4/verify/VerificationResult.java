package org.sparkfp4.verify;

import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;

/** What a verification saw and found. */
public final class VerificationResult {
  private final int shards;
  private final long bytes;
  private final int copies;
  private final List<LayerCheck> layers;
  private final CodeCounts counts;
  private final Differences differences;

  VerificationResult(
      int shards, long bytes, int copies, List<LayerCheck> layers, CodeCounts counts, Differences differences) {
    this.shards = shards;
    this.bytes = bytes;
    this.copies = copies;
    this.layers = List.copyOf(layers);
    this.counts = counts;
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
    double squares = layers.stream().mapToDouble(layer -> layer.accuracy().sumSquares()).sum();
    double errors = layers.stream().mapToDouble(layer -> layer.accuracy().squaredError()).sum();
    return errors == 0 ? 0 : Math.sqrt(errors / squares);
  }

  /** Shards that were read. */
  public int shards() {
    return shards;
  }

  /** Tensors that were compared with the source byte for byte, or, where it stores codes, in BF16. */
  public int copies() {
    return copies;
  }

  /** The quantized layers whose bytes could be decoded. */
  public List<LayerCheck> layers() {
    return layers;
  }

  /** Codes and block scales of all these layers. */
  public CodeCounts counts() {
    return counts;
  }

  /** The differences in words, as many as are kept. */
  public List<String> differences() {
    return differences.first();
  }

  /** All differences, those too that no words are kept of. */
  public long differenceCount() {
    return differences.count();
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
    text.append(String.format(Locale.ROOT, "Read %,d bytes in %d %s%n", bytes, shards,
        shards == 1 ? "shard" : "shards"));
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
    return text.append(differences.text()).toString();
  }
}
