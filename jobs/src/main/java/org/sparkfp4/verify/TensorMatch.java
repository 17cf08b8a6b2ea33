package org.sparkfp4.verify;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.safetensors.DType;

/**
 * Gives every tensor of both checkpoints its part: source of a layer, part of a layer, or the same in both. Dtypes and
 * shapes are held to the layout's rules on the way; no tensor's bytes are read.
 */
final class TensorMatch {
  private static final Set<DType> WEIGHTS = Set.of(DType.BF16, DType.F16, DType.F32);

  private final Checkpoint source;
  private final Checkpoint quantized;
  private final Scheme scheme;
  private final Differences differences;
  private final Map<String, QuantizedLayer> layers = new TreeMap<>();
  private final List<CopiedTensor> copies = new ArrayList<>();
  private final Set<String> claimed = new HashSet<>();

  TensorMatch(Checkpoint source, Checkpoint quantized, Scheme scheme, double fraction, Differences differences) {
    this.source = source;
    this.quantized = quantized;
    this.scheme = scheme;
    this.differences = differences;
    Set<String> modules = modules();
    Set<String> sample = Sample.of(modules, fraction);
    modules.forEach(module -> matchLayer(module, modules, sample.contains(module)));
    source.tensors().stream().filter(tensor -> !claimed.contains(tensor.name())).forEach(this::matchCopy);
    quantized.tensors().stream()
        .filter(tensor -> !claimed.contains(tensor.name()) && source.tensor(tensor.name()).isEmpty())
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

  /** The modules that any tensor of the quantized checkpoint says are quantized. */
  private Set<String> modules() {
    Set<String> modules = new TreeSet<>();
    for (LocatedTensor tensor : quantized.tensors()) {
      String module = source.tensor(tensor.name()).isPresent() ? null : scheme.moduleOf(tensor.name());
      if (module != null) {
        modules.add(module);
      }
    }

    return modules;
  }

  private void matchLayer(String module, Set<String> modules, boolean sampled) {
    LocatedTensor weight = source.tensor(module + ".weight").orElse(null);
    LocatedTensor packed = part(scheme.packed(module));
    LocatedTensor scales = part(scheme.scales(module));
    LocatedTensor globalScale = part(scheme.globalScale(module));
    LocatedTensor inputScale = part(scheme.inputScale(module));
    claimed.add(module + ".weight");
    if (weight == null) {
      differences.add("Unexpected layer " + module + ": the source has no " + module + ".weight");
      return;
    }

    boolean right = isQuantizable(weight);
    right &= hasForm(scheme.packed(module), packed, DType.U8, weight, 2);
    right &= hasForm(scheme.scales(module), scales, DType.F8_E4M3, weight, Nvfp4.BLOCK);
    right &= isScalar(scheme.globalScale(module), globalScale);
    right &= inputScale == null || isScalar(scheme.inputScale(module), inputScale);
    if (right) {
      layers.put(
          module,
          new QuantizedLayer(
              module, scheme, weight, packed, scales, globalScale, inputScale, sharers(module, modules), sampled));
    }
  }

  private LocatedTensor part(String name) {
    claimed.add(name);
    return quantized.tensor(name).orElse(null);
  }

  /** The sources of the layers that runtimes fuse with this one; all of them are quantized or none is. */
  private List<LocatedTensor> sharers(String module, Set<String> modules) {
    List<LocatedTensor> sharers = new ArrayList<>();
    for (String other : FusedLayers.of(module)) {
      LocatedTensor weight = source.tensor(other + ".weight").orElse(null);
      if (weight != null && modules.contains(other)) {
        sharers.add(weight);
      } else if (weight != null) {
        differences.add(
            "Layer " + module + " is quantized and " + other + " is not, though runtimes fuse them into one layer");
      }
    }

    return sharers;
  }

  private boolean isQuantizable(LocatedTensor weight) {
    boolean fits = WEIGHTS.contains(weight.dtype())
        && weight.shape().size() == 2 && weight.length() > 0
        && weight.cols() % Nvfp4.BLOCK == 0;
    if (!fits) {
      differences.add("Cannot verify the layer of source tensor " + describe(weight)
          + ": its weight is no BF16, F16 or F32 matrix, or empty, or its columns are no multiple of " + Nvfp4.BLOCK);
    }

    return fits;
  }

  private boolean hasForm(String name, LocatedTensor tensor, DType dtype, LocatedTensor weight, int elements) {
    if (tensor == null) {
      differences.add("Missing tensor " + name + " of a quantized layer");
      return false;
    }

    List<Long> shape = List.of(weight.rows(), weight.cols() / elements);
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

  private void matchCopy(LocatedTensor original) {
    LocatedTensor copy = quantized.tensor(original.name()).orElse(null);
    if (copy == null) {
      differences.add("Missing tensor " + original.name() + ", which the source has in " + original.file());
    } else if (copy.dtype() != original.dtype() || !copy.shape().equals(original.shape())) {
      differences.add("Tensor " + describe(copy) + " is " + original.dtype() + " " + original.shape()
          + " in the source, and nothing says that it is quantized");
    } else {
      copies.add(new CopiedTensor(original, copy));
    }
  }

  private static String describe(LocatedTensor tensor) {
    return tensor.name() + " (" + tensor.dtype() + " " + tensor.shape() + ", " + tensor.file() + ")";
  }
}
