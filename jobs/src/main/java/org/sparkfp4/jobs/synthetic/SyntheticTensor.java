package org.sparkfp4.jobs.synthetic;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.safetensors.DType;

/** A tensor to be made: its bytes are a function of the seed, its name and its element type alone. */
record SyntheticTensor(String name, DType dtype, List<Long> shape, Kind kind) implements Serializable {
  /** How the values are distributed. */
  enum Kind {
    /** Around 0, of a spread that differs from tensor to tensor and from expert to expert, with a few outliers. */
    WEIGHT,
    /** Around 1. */
    NORM
  }

  SyntheticTensor {
    shape = List.copyOf(shape);
  }

  long elements() {
    return shape.stream().mapToLong(Long::longValue).reduce(1, Math::multiplyExact);
  }

  long bytes() {
    return dtype.bytes(elements());
  }
}
