package org.sparkfp4.checkpoint;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The tensors of a checkpoint as a model has them: a weight that is stored as codes and scales is one tensor.
 *
 * <p>That one has the codes' name, place and element type, and the weight's shape.
 */
public final class SourceTensors {
  private static final List<String> WEIGHTS = List.of(".weight", ".weight_packed");

  private final List<LocatedTensor> tensors = new ArrayList<>();

  /** Tensors that only describe stored weights, by module. */
  private final Map<String, List<LocatedTensor>> dropped = new LinkedHashMap<>();

  private final Map<String, StoredWeight> stored;

  /** The codes of stored weights as their headers are. */
  private final Map<String, LocatedTensor> codes = new HashMap<>();

  private final Map<String, LocatedTensor> origins;

  private SourceTensors(
      List<LocatedTensor> all,
      Map<String, StoredWeight> stored,
      Map<String, LocatedTensor> parts,
      Map<String, LocatedTensor> origins) {
    this.stored = stored;
    this.origins = origins;
    for (LocatedTensor tensor : all) {
      StoredWeight weight = stored.get(tensor.name());
      if (weight != null) {
        tensors.add(weight.weight());
        codes.put(tensor.name(), tensor);
      } else if (!parts.containsKey(tensor.name())) {
        tensors.add(tensor);
      }
    }

    stored.values().forEach(weight -> parts.remove(weight.scale().name()));
    for (LocatedTensor part : parts.values()) {
      String module = part.name().substring(0, part.name().lastIndexOf('.'));
      dropped.computeIfAbsent(module, key -> new ArrayList<>()).add(part);
    }
  }

  /**
   * Joins stored-quantized weights with their scales, by config.json and by the tensors' headers, which must agree.
   *
   * @throws IllegalArgumentException naming the tensor, its file and a remedy if they do not, if a weight has no scale
   *     or a scale no weight, if a scale's shape or type does not fit, or if a format is not one that is read
   */
  public static SourceTensors of(List<LocatedTensor> tensors, ModelConfig config) {
    return join(tensors, config, Map.of());
  }

  /**
   * The same, and the experts' matrices in place of tensors that stack them.
   *
   * @param batch whether stacks stay so, {@code [experts, rows, K]}, in families whose runtimes want that
   * @throws IllegalArgumentException likewise, and if config.json does not tell the order of a stack's dimensions, or
   *     contradicts it
   */
  public static SourceTensors of(
      List<LocatedTensor> tensors, ModelConfig config, ModelFamily family, boolean batch) {
    ExpertStacks stacks = new ExpertStacks(family, config, batch);
    return join(stacks.unstack(tensors), config, stacks.origins());
  }

  private static SourceTensors join(
      List<LocatedTensor> tensors, ModelConfig config, Map<String, LocatedTensor> origins) {
    StoredWeightFinder finder = new StoredWeightFinder(tensors, SourceQuantization.of(config));
    return new SourceTensors(tensors, finder.weights(), finder.parts(), origins);
  }

  /** The tensor of the checkpoint that a tensor is a slice of; the tensor itself if it is none of another. */
  public LocatedTensor origin(LocatedTensor tensor) {
    return origins.getOrDefault(tensor.name(), tensor);
  }

  /** The tensors without scales, in the order of the checkpoint. */
  public List<LocatedTensor> tensors() {
    return tensors;
  }

  /** How a tensor is stored, or null for one whose elements are as the header says. */
  public StoredWeight stored(LocatedTensor tensor) {
    return stored.get(tensor.name());
  }

  /** The tensors that a stored weight is made of. */
  public StoredParts parts(StoredWeight weight) {
    String name = weight.weight().name();
    return new StoredParts(codes.get(name), weight.scale(), dropped.getOrDefault(module(name), List.of()));
  }

  /** What a tensor's elements are, in the text that {@link org.sparkfp4.formats.SourceScheme#parse} takes. */
  public String scheme(LocatedTensor tensor) {
    StoredWeight weight = stored(tensor);
    return weight == null ? tensor.dtype().name() : weight.scheme().text();
  }

  /** Tensors beside a stored weight and its scales that only describe it: its shape, the scale of its activations. */
  public List<LocatedTensor> dropped() {
    return dropped.values().stream().flatMap(List::stream).toList();
  }

  /** Whether a tensor's name is that of a layer's weight. */
  public static boolean isWeight(String tensor) {
    return WEIGHTS.stream().anyMatch(tensor::endsWith);
  }

  /** The module that a weight's name is of; the name itself if it is none of a weight. */
  public static String module(String tensor) {
    return isWeight(tensor) ? tensor.substring(0, tensor.lastIndexOf('.')) : tensor;
  }
}
