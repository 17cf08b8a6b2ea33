package org.sparkfp4.verify;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.safetensors.DType;

/**
 * Gives every tensor of both checkpoints its part: source of a layer, part of a layer, or the same in both. Dtypes and
 * shapes are held to the layout's rules on the way; no tensor's bytes are read.
 */
final class TensorMatch {
  private static final Set<DType> WEIGHTS = Set.of(DType.BF16, DType.F16, DType.F32);

  private final SourceTensors source;
  private final Checkpoint quantized;
  private final Scheme scheme;
  private final Differences differences;
  private final Map<String, QuantizedLayer> layers = new TreeMap<>();
  private final List<CopiedTensor> copies = new ArrayList<>();
  private final StoredMatch stored;
  private final List<DequantizedTensor> dequantized = new ArrayList<>();
  private final Map<String, LocatedTensor> weights = new HashMap<>();

  /** Names in the output of tensors that are not quantized. */
  private final Set<String> unquantized = new HashSet<>();

  /** Tensors of the source that quantized layers have. */
  private final Set<String> used = new HashSet<>();

  /** Tensors of the output that are parts of quantized layers. */
  private final Set<String> parts = new HashSet<>();

  /** @param sourceNames whether the output's loaders take the source's names of what is not quantized */
  TensorMatch(
      SourceTensors source,
      Checkpoint quantized,
      Scheme scheme,
      boolean sourceNames,
      SampleSize sample,
      Differences differences) {
    this.source = source;
    this.quantized = quantized;
    this.scheme = scheme;
    this.differences = differences;
    this.stored = new StoredMatch(source, quantized, scheme, sourceNames, differences);
    unquantized.addAll(stored.names());
    for (LocatedTensor tensor : source.tensors()) {
      if (!stored.includes(tensor)) {
        unquantized.add(outputName(source.origin(tensor)));
      }

      if (SourceTensors.isWeight(tensor.name())) {
        weights.put(SourceTensors.module(tensor.name()), tensor);
      }
    }

    Set<String> modules = modules();
    Set<String> sampled = Sample.of(modules, sample);
    modules.forEach(module -> matchLayer(module, modules, sampled.contains(module)));
    matchCopies();
    quantized.tensors().stream()
        .filter(tensor -> !parts.contains(tensor.name()) && !unquantized.contains(tensor.name()))
        .filter(tensor -> !isCacheScale(tensor))
        .forEach(tensor -> differences.add("Unexpected tensor " + describe(tensor)
            + ": the source has none of that name, and it is no part of a quantized layer"));
  }

  /** Scales of a quantized key-value cache stand beside the layers; no source has them. */
  private static boolean isCacheScale(LocatedTensor tensor) {
    return tensor.rows() * tensor.cols() == 1
        && (tensor.name().endsWith(".k_scale") || tensor.name().endsWith(".v_scale"));
  }

  /** The layers whose bytes can be verified, by module. */
  Map<String, QuantizedLayer> layers() {
    return layers;
  }

  /** Tensors that must be the same in both. */
  List<CopiedTensor> copies() {
    return copies;
  }

  /** Tensors that the source stores as codes and the output in BF16. */
  List<DequantizedTensor> dequantized() {
    return dequantized;
  }

  /** The weights that are stored in the source's precision. */
  StoredMatch stored() {
    return stored;
  }

  /** All tensors of the output that are in high precision. */
  List<LocatedTensor> kept() {
    List<LocatedTensor> kept = new ArrayList<>();
    copies.forEach(tensor -> kept.add(tensor.copy()));
    dequantized.forEach(tensor -> kept.add(tensor.copy()));
    return kept;
  }

  /** The modules that any tensor of the quantized checkpoint says are quantized. */
  private Set<String> modules() {
    Set<String> modules = new TreeSet<>();
    for (LocatedTensor tensor : quantized.tensors()) {
      String module = unquantized.contains(tensor.name()) ? null : scheme.moduleOf(tensor.name());
      if (module != null) {
        modules.add(module);
      }
    }

    return modules;
  }

  private void matchLayer(String module, Set<String> modules, boolean sampled) {
    LocatedTensor weight = weights.get(module);
    boolean stacked = weight != null && weight.shape().size() == 3;
    LocatedTensor packed = part(scheme.packed(module, stacked));
    LocatedTensor scales = part(scheme.scales(module, stacked));
    LocatedTensor globalScale = part(scheme.globalScale(module, stacked));
    LocatedTensor inputScale = part(scheme.inputScale(module, stacked));
    if (weight == null) {
      differences.add("Unexpected layer " + module + ": the source has no " + module + ".weight");
      return;
    }

    used.add(weight.name());
    used.add(source.origin(weight).name());
    SourceWeight stored = SourceWeight.of(source, weight);
    boolean right = isQuantizable(stored);
    right &= hasForm(scheme.packed(module, stacked), packed, DType.U8, weight, 2);
    right &= hasForm(scheme.scales(module, stacked), scales, DType.F8_E4M3, weight, Nvfp4.BLOCK);
    right &= isScalar(scheme.globalScale(module, stacked), globalScale);
    right &= inputScale == null || isScalar(scheme.inputScale(module, stacked), inputScale);
    if (right) {
      layers.put(
          module,
          new QuantizedLayer(
              module, scheme, stored, byRows(packed, weight), byRows(scales, weight), globalScale, inputScale,
              sharers(module, modules), sampled));
    }
  }

  /** Codes or scales with the rows of a weight: in a stack the rows are innermost. */
  private static LocatedTensor byRows(LocatedTensor tensor, LocatedTensor weight) {
    if (weight.shape().size() != 3) {
      return tensor;
    }

    long rows = tensor.shape().get(2);
    long cols = tensor.shape().get(1);
    return new LocatedTensor(
        tensor.name(), tensor.dtype(), List.of(tensor.shape().get(0), rows, cols), tensor.file(), tensor.offset(),
        tensor.length(), List.of(rows * cols, 1L, rows));
  }

  private LocatedTensor part(String name) {
    parts.add(name);
    return quantized.tensor(name).orElse(null);
  }

  /** The sources of the layers that runtimes fuse with this one; all of them are quantized or none is. */
  private List<SourceWeight> sharers(String module, Set<String> modules) {
    List<SourceWeight> sharers = new ArrayList<>();
    for (String other : FusedLayers.of(module)) {
      LocatedTensor weight = weights.get(other);
      if (weight != null && modules.contains(other)) {
        sharers.add(SourceWeight.of(source, weight));
      } else if (weight != null) {
        differences.add(
            "Layer " + module + " is quantized and " + other + " is not, though runtimes fuse them into one layer");
      }
    }

    return sharers;
  }

  private boolean isQuantizable(SourceWeight stored) {
    LocatedTensor weight = stored.weight();
    boolean fits = (stored.scale() != null || WEIGHTS.contains(weight.dtype()))
        && (weight.shape().size() == 2 || weight.shape().size() == 3)
        && weight.length() > 0
        && weight.cols() % Nvfp4.BLOCK == 0;
    if (!fits) {
      differences.add("Cannot verify the layer of source tensor " + describe(weight)
          + ": its weight is no BF16, F16, F32 or stored-quantized matrix, or empty, or its columns are no multiple of "
          + Nvfp4.BLOCK);
    }

    return fits;
  }

  private boolean hasForm(String name, LocatedTensor tensor, DType dtype, LocatedTensor weight, int elements) {
    if (tensor == null) {
      differences.add("Missing tensor " + name + " of a quantized layer");
      return false;
    }

    long cols = weight.cols() / elements;
    List<Long> own = weight.shape();
    List<Long> shape = own.size() == 3 ? List.of(own.get(0), cols, own.get(1)) : List.of(weight.rows(), cols);
    if (tensor.dtype() != dtype || !tensor.shape().equals(shape)) {
      differences.add("Tensor " + describe(tensor) + " must be " + dtype + " " + shape + ", as its source is "
          + weight.dtype() + " " + weight.shape());
      return false;
    }

    return true;
  }

  private boolean isScalar(String name, LocatedTensor tensor) {
    if (tensor == null) {
      differences.add("Missing tensor " + name + " of a quantized layer");
      return false;
    }

    if (tensor.dtype() != DType.F32 || !(tensor.shape().isEmpty() || tensor.shape().equals(List.of(1L)))) {
      differences.add("Tensor " + describe(tensor) + " must be F32 [] or [1]");
      return false;
    }

    return true;
  }

  private String outputName(LocatedTensor tensor) {
    return source.stored(tensor) == null ? tensor.name() : SourceTensors.module(tensor.name()) + ".weight";
  }

  /** What no quantized layer has used; slices of a tensor that is not quantized are compared as the one tensor. */
  private void matchCopies() {
    Map<String, LocatedTensor> rest = new LinkedHashMap<>();
    for (LocatedTensor tensor : source.tensors()) {
      LocatedTensor origin = source.origin(tensor);
      if (used.contains(tensor.name()) || stored.includes(tensor)) {
        continue;
      }

      if (used.contains(origin.name())) {
        differences.add("Missing layer " + SourceTensors.module(tensor.name()) + ", which the source has in "
            + origin.name() + " (" + origin.file() + "), as it has others that are quantized");
      } else {
        rest.put(origin.name(), origin == tensor || source.stored(tensor) == null ? origin : tensor);
      }
    }

    rest.values().forEach(this::matchCopy);
  }

  private void matchCopy(LocatedTensor original) {
    LocatedTensor copy = quantized.tensor(outputName(original)).orElse(null);
    if (source.stored(original) != null) {
      matchDequantized(original, copy);
      return;
    }

    if (copy == null) {
      differences.add("Missing tensor " + original.name() + ", which the source has in " + original.file());
    } else if (copy.dtype() != original.dtype() || !copy.shape().equals(original.shape())) {
      differences.add("Tensor " + describe(copy) + " is " + original.dtype() + " " + original.shape()
          + " in the source, and nothing says that it is quantized");
    } else {
      copies.add(new CopiedTensor(original, copy));
    }
  }

  private void matchDequantized(LocatedTensor original, LocatedTensor copy) {
    if (copy == null) {
      differences.add("Missing tensor " + outputName(original) + ", which the source has in " + original.file()
          + " as " + original.name());
    } else if (copy.dtype() != DType.BF16 || !copy.shape().equals(original.shape())) {
      differences.add("Tensor " + describe(copy) + " must be BF16 " + original.shape() + ", as the source stores it "
          + "quantized, and nothing says that it is quantized here");
    } else {
      dequantized.add(new DequantizedTensor(SourceWeight.of(source, original), copy));
    }
  }

  private static String describe(LocatedTensor tensor) {
    return tensor.name() + " (" + tensor.dtype() + " " + tensor.shape() + ", " + tensor.file() + ")";
  }
}
