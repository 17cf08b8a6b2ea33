package org.sparkfp4.plan;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.sparkfp4.checkpoint.ModelConfig;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.StoredWeight;

/** What becomes of weights that the source stores quantized and a plan does not quantize. */
final class StoredWeights {
  private static final String INPUT_SCALE = "input_scale";

  private final SourceTensors source;
  private final ModelConfig config;
  private final Layout layout;
  private final boolean keep;
  private final Map<String, KeptFormat> formats = new HashMap<>();

  /** @param keep whether they stay as they are stored; else they become BF16 */
  StoredWeights(SourceTensors source, ModelConfig config, Layout layout, boolean keep) {
    this.source = source;
    this.config = config;
    this.layout = layout;
    this.keep = keep;
  }

  /**
   * The item of such a weight.
   *
   * @throws IllegalArgumentException if it is to stay as it is stored, and the layout cannot say how that is
   */
  ItemDraft item(StoredWeight stored) {
    if (!keep) {
      return ItemDraft.dequantized(stored);
    }

    List<CarriedTensor> tensors = layout.carry(stored, source.parts(stored), config);
    boolean staticActivations = tensors.stream().anyMatch(tensor -> tensor.name().endsWith("." + INPUT_SCALE));
    formats.put(
        SourceTensors.module(stored.weight().name()), new KeptFormat(stored.scheme().text(), staticActivations));
    return ItemDraft.carried(stored, tensors);
  }

  /** How a module stays stored whose item was asked for, or null where it is in high precision. */
  KeptFormat format(String module) {
    return formats.get(module);
  }

  /** The tensors that have no place in the output: what describes stored weights beside their scales. */
  List<DroppedTensor> dropped(List<ItemDraft> items) {
    Set<String> carried = items.stream()
        .flatMap(item -> item.carried().stream())
        .map(tensor -> tensor.source().name())
        .collect(Collectors.toSet());
    return source.dropped().stream()
        .filter(part -> !carried.contains(part.name()))
        .map(part -> new DroppedTensor(part.name(), part.length()))
        .toList();
  }
}
