package org.sparkfp4.convert;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.safetensors.DType;

/** Those of a checkpoint's tensors that no NVFP4 layer has claimed yet; what is left in the end is copied. */
final class UnclaimedTensors {
  private final Map<String, LocatedTensor> tensors = new LinkedHashMap<>();

  UnclaimedTensors(List<LocatedTensor> all) {
    all.forEach(tensor -> tensors.put(tensor.name(), tensor));
  }

  /** Takes a tensor for a layer; null where there is none of that name. */
  LocatedTensor claim(String name) {
    return tensors.remove(name);
  }

  boolean contains(String name) {
    return tensors.containsKey(name);
  }

  /** The tensors in the checkpoint's order. */
  List<LocatedTensor> list() {
    return List.copyOf(tensors.values());
  }

  /**
   * What the router adds to an expert's score, which stays a tensor of its own; null where there is none.
   *
   * @param path what the names of a layer's experts begin with
   * @param experts how many there are
   */
  LocatedTensor routerBias(String path, int experts) {
    String block = path.substring(0, Math.max(0, path.lastIndexOf('.')));
    for (String name : List.of(".gate.e_score_correction_bias", ".e_score_correction_bias",
        ".router.e_score_correction_bias")) {
      LocatedTensor bias = tensors.get(block + name);
      if (bias != null && bias.shape().equals(List.of((long) experts))
          && List.of(DType.F32, DType.BF16, DType.F16).contains(bias.dtype())) {
        return bias;
      }
    }

    return null;
  }
}
