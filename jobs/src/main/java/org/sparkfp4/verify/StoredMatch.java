package org.sparkfp4.verify;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.formats.CodeType;

/** The weights that the source stores quantized and the output in the same bytes, whatever their tensors' names. */
final class StoredMatch {
  private static final List<String> DESCRIBING = List.of("weight_shape", "input_scale");

  private final Checkpoint quantized;
  private final Scheme scheme;
  private final boolean sourceNames;
  private final Differences differences;
  private final Map<String, StoredForm> forms = new TreeMap<>();
  private final List<CopiedTensor> copies = new ArrayList<>();
  private final Set<String> weights = new HashSet<>();
  private final Set<String> names = new HashSet<>();

  /** @param sourceNames whether the output's loaders take the source's names */
  StoredMatch(
      SourceTensors source, Checkpoint quantized, Scheme scheme, boolean sourceNames, Differences differences) {
    this.quantized = quantized;
    this.scheme = scheme;
    this.sourceNames = sourceNames;
    this.differences = differences;
    for (LocatedTensor tensor : source.tensors()) {
      StoredWeight stored = source.stored(tensor);
      if (stored != null && source.origin(tensor) == tensor) {
        match(stored, source.parts(stored));
      }
    }
  }

  /** How each module is stored. */
  Map<String, StoredForm> forms() {
    return forms;
  }

  /** Their tensors. */
  List<CopiedTensor> copies() {
    return copies;
  }

  /** Names of their tensors in the output. */
  Set<String> names() {
    return names;
  }

  /** Whether a weight of the source is one of them. */
  boolean includes(LocatedTensor weight) {
    return weights.contains(weight.name());
  }

  private void match(StoredWeight stored, StoredParts parts) {
    String module = SourceTensors.module(stored.weight().name());
    boolean packed = scheme == Scheme.COMPRESSED_TENSORS && stored.scheme().codes() != CodeType.E4M3;
    String codes = sourceNames ? parts.codes().name() : module + (packed ? ".weight_packed" : ".weight");
    String scales = sourceNames ? parts.scale().name() : module + ".weight_scale";
    Optional<LocatedTensor> copy = quantized.tensor(codes);
    if (copy.isEmpty() || copy.get().dtype() != parts.codes().dtype()
        || quantized.tensor(scheme.globalScale(module, false)).isPresent()) {
      return;
    }

    weights.add(stored.weight().name());
    add(codes, parts.codes());
    add(scales, parts.scale());
    boolean staticActivations = false;
    for (String part : DESCRIBING) {
      String name = module + "." + part;
      Optional<LocatedTensor> original = parts.other(part);
      boolean required = part.equals("weight_shape") && !sourceNames;
      if (original.isPresent() && (required || quantized.tensor(name).isPresent())) {
        add(name, original.get());
        staticActivations |= part.equals("input_scale");
      }
    }

    forms.put(module, StoredForm.of(stored.scheme(), staticActivations));
  }

  private void add(String name, LocatedTensor original) {
    names.add(name);
    LocatedTensor copy = quantized.tensor(name).orElse(null);
    if (copy == null) {
      differences.add("Missing tensor " + name + ", which the source has in " + original.file() + " as "
          + original.name());
    } else if (copy.dtype() != original.dtype() || !elements(copy).equals(elements(original))) {
      differences.add("Tensor " + copy.name() + " (" + copy.dtype() + " " + copy.shape() + ", " + copy.file() + ") is "
          + original.dtype() + " " + original.shape() + " in the source");
    } else {
      copies.add(new CopiedTensor(original, copy));
    }
  }

  /** The dimensions that say something: a scalar may be a vector of one, a vector a column. */
  private static List<Long> elements(LocatedTensor tensor) {
    return tensor.shape().stream().filter(dimension -> dimension != 1).toList();
  }
}
