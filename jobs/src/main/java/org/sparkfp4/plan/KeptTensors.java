package org.sparkfp4.plan;

import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.ModelTensors;

/**
 * The tensors of the source that are carried over for weights which stay as they are. Weights that are slices of one
 * tensor stay together.
 */
final class KeptTensors {
  private final ModelTensors tensors;
  private final Map<String, LocatedTensor> quantized = new HashMap<>();
  private final Map<String, LocatedTensor> kept = new LinkedHashMap<>();

  /**
   * @throws IllegalArgumentException if a tensor is to be quantized in part, or is stored quantized and cannot be carried
   *     over by itself
   */
  KeptTensors(UnitFinder found, ModelTensors tensors) {
    this.tensors = tensors;
    found.units().stream().flatMap(List::stream).map(Member::weight)
        .forEach(weight -> quantized.put(whole(weight).name(), weight));
    found.kept().forEach(weight -> keep(weight, found.reason(weight)));
  }

  Collection<LocatedTensor> tensors() {
    return kept.values();
  }

  private void keep(LocatedTensor weight, String reason) {
    LocatedTensor whole = whole(weight);
    LocatedTensor other = quantized.get(whole.name());
    if (other != null) {
      throw new IllegalArgumentException("Cannot quantize " + other.name() + " but not " + weight.name() + " (" + reason
          + "): both are in the tensor " + whole.name() + " (" + whole.file()
          + "), which is carried over or replaced as a whole; choose both or neither");
    }

    if (whole != weight && tensors.source().stored(weight) != null) {
      throw new IllegalArgumentException("Cannot leave " + whole.name() + " (" + whole.file() + ") as it is (" + reason
          + "): it is stored quantized with the experts stacked, and there is no BF16 form of that; quantize it, or give "
          + "a BF16 source");
    }

    kept.put(whole.name(), whole);
  }

  private LocatedTensor whole(LocatedTensor weight) {
    return tensors.source().origin(weight);
  }
}
