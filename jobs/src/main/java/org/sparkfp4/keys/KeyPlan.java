package org.sparkfp4.keys;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.sparkfp4.files.Sha256;
import org.sparkfp4.source.SlabFile;

/**
 * What a run does, from headers and slot maps alone.
 *
 * @param input where keys come from, for messages
 * @param options what bytes depend on beside the keys
 * @param files the input's safetensors files
 * @param tensors of the output
 * @param layers of the output
 * @param ranges of all tensors, in their order
 * @param fingerprint tells runs apart whose outputs may differ
 */
record KeyPlan(String input, KeyOptions options, List<SlabFile> files, List<CacheTensor> tensors,
    List<CacheLayer> layers, List<CacheRange> ranges, String fingerprint) implements Serializable {
  /** Goes up whenever the same keys and options give other bytes than before. */
  private static final int BYTE_FORMAT = 1;

  /** About how many bytes a range has: what a task holds in memory. */
  private static final long RANGE_BYTES = 32L << 20;

  /** @param source tells the state of an input that is no file, or is empty */
  static KeyPlan of(String input, KeyOptions options, List<SlabFile> files, List<CacheTensor> tensors,
      List<CacheLayer> layers, String source) {
    List<CacheRange> ranges = new ArrayList<>();
    for (int tensor = 0; tensor < tensors.size(); tensor++) {
      long units = tensors.get(tensor).units();
      int step = unitsOfRange(tensors.get(tensor).unitBytes());
      for (long first = 0; first < units; first += step) {
        ranges.add(new CacheRange(ranges.size(), tensor, first, (int) Math.min(step, units - first)));
      }
    }

    return new KeyPlan(input, options, List.copyOf(files), List.copyOf(tensors), List.copyOf(layers),
        List.copyOf(ranges), fingerprint(options, files, tensors, source));
  }

  static int unitsOfRange(long unitBytes) {
    return (int) Math.max(1, RANGE_BYTES / unitBytes);
  }

  /** The ranges of a layer's tensors, in the order of their bytes. */
  List<CacheRange> rangesOf(CacheLayer layer) {
    return layer.tensors().stream()
        .flatMap(tensor -> ranges.stream().filter(range -> range.tensor() == tensor))
        .toList();
  }

  /** Number of a layer's record, behind those of the ranges. */
  int record(int layer) {
    return ranges.size() + layer;
  }

  /** Bytes of a range's pages. */
  long rangeBytes(int id) {
    return ranges.get(id).count() * tensors.get(ranges.get(id).tensor()).unitBytes();
  }

  /** Bytes of a layer's tensors. */
  long layerBytes(int layer) {
    return layers.get(layer).tensors().stream().mapToLong(tensor -> tensors.get(tensor).bytes()).sum();
  }

  long bytes() {
    return tensors.stream().mapToLong(CacheTensor::bytes).sum();
  }

  private static String fingerprint(KeyOptions options, List<SlabFile> files, List<CacheTensor> tensors,
      String source) {
    StringBuilder all = new StringBuilder().append(BYTE_FORMAT).append('\n').append(options).append('\n');
    files.forEach(file -> all.append(file).append('\n'));
    for (CacheTensor tensor : tensors) {
      all.append(tensor.name().length()).append(' ').append(tensor.name()).append(' ').append(tensor.shape())
          .append(' ').append(tensor.type()).append(' ').append(Sha256.hex(Arrays.toString(tensor.weight()))).append(' ')
          .append(Sha256.hex(Arrays.toString(tensor.bias()))).append('\n');
    }

    return Sha256.hex(all.append(source).toString());
  }
}
