package org.sparkfp4.verify;

import java.util.List;
import java.util.Optional;
import org.sparkfp4.checkpoint.Checkpoint;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.formats.Nvfp4Recipe;

/** How a checkpoint spells an NVFP4 layer: names behind the module's, and whose arithmetic decodes it. */
enum Scheme {
  /** NVIDIA Model Optimizer; the global scale multiplies. */
  MODELOPT(Nvfp4Recipe.MODELOPT, "weight", "weight_scale", "weight_scale_2", "input_scale"),
  /** compressed-tensors; the global scale divides. */
  COMPRESSED_TENSORS(
      Nvfp4Recipe.COMPRESSED_TENSORS, "weight_packed", "weight_scale", "weight_global_scale", "input_global_scale");

  /** What stands before the part's name where the experts of a layer are one tensor, which has the module's own name. */
  private static final String STACKED = "_";

  private final Nvfp4Recipe recipe;
  private final String packed;
  private final String scales;
  private final String globalScale;
  private final String inputScale;

  Scheme(Nvfp4Recipe recipe, String packed, String scales, String globalScale, String inputScale) {
    this.recipe = recipe;
    this.packed = packed;
    this.scales = scales;
    this.globalScale = globalScale;
    this.inputScale = inputScale;
  }

  /** The scheme that a checkpoint's global scales are named by; of one with both, or with none, there is none. */
  static Optional<Scheme> of(Checkpoint quantized) {
    List<Scheme> used = List.of(values()).stream().filter(scheme -> scheme.isIn(quantized)).toList();
    return used.size() == 1 ? Optional.of(used.get(0)) : Optional.empty();
  }

  private boolean isIn(Checkpoint quantized) {
    return quantized.tensors().stream()
        .map(LocatedTensor::name)
        .anyMatch(name -> name.endsWith("." + globalScale) || name.endsWith(STACKED + globalScale));
  }

  Nvfp4Recipe recipe() {
    return recipe;
  }

  /** Name of a module's E2M1 codes. */
  String packed(String module, boolean stacked) {
    return stacked ? module : module + "." + packed;
  }

  /** Name of a module's block scales. */
  String scales(String module, boolean stacked) {
    return module + (stacked ? STACKED : ".") + scales;
  }

  /** Name of a module's global scale. */
  String globalScale(String module, boolean stacked) {
    return module + (stacked ? STACKED : ".") + globalScale;
  }

  /** Name of the global scale of a module's activations. */
  String inputScale(String module, boolean stacked) {
    return module + (stacked ? STACKED : ".") + inputScale;
  }

  /** The module that a tensor makes a quantized one, or null: a name alone tells, save for a weight under its own. */
  String moduleOf(String tensor) {
    int dot = tensor.lastIndexOf('.');
    String last = tensor.substring(dot + 1);
    for (String part : List.of(scales, globalScale, inputScale)) {
      if (last.endsWith(STACKED + part)) {
        return tensor.substring(0, tensor.length() - part.length() - 1);
      }
    }

    boolean telling = last.equals(scales) || last.equals(globalScale) || last.equals(inputScale)
        || (last.equals(packed) && !last.equals("weight"));
    return dot > 0 && telling ? tensor.substring(0, dot) : null;
  }
}
