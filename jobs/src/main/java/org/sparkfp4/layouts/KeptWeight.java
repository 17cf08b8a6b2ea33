package org.sparkfp4.layouts;

import java.util.List;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceTensors;
import org.sparkfp4.checkpoint.StoredParts;
import org.sparkfp4.checkpoint.StoredWeight;
import org.sparkfp4.plan.CarriedTensor;

/** A weight that is to stay as the source stores it, and the names that its tensors get. */
record KeptWeight(StoredWeight weight, StoredParts parts) {
  /**
   * Requires what a layout asks of such weights.
   *
   * @throws IllegalArgumentException if it is not so
   */
  void require(boolean condition, String why) {
    if (!condition) {
      LocatedTensor codes = parts.codes();
      throw new IllegalArgumentException("Cannot keep " + codes.name() + " (" + codes.dtype() + " " + codes.shape()
          + ", " + codes.file() + ") as the source stores it, " + weight.scheme().text() + ": " + why
          + "; leave --keep-source-precision out, and it becomes BF16");
    }
  }

  /** Codes and scales, each under its own name. */
  List<CarriedTensor> unchanged() {
    LocatedTensor codes = parts.codes();
    LocatedTensor scale = parts.scale();
    return List.of(
        new CarriedTensor(codes, codes.name(), codes.shape()), new CarriedTensor(scale, scale.name(), scale.shape()));
  }

  CarriedTensor codes(String name) {
    return part(parts.codes(), name, parts.codes().shape());
  }

  CarriedTensor scale(String name, List<Long> shape) {
    return part(parts.scale(), name, shape);
  }

  /** A tensor under a name behind the module's. */
  CarriedTensor part(LocatedTensor tensor, String name, List<Long> shape) {
    return new CarriedTensor(tensor, SourceTensors.module(weight.weight().name()) + "." + name, shape);
  }
}
