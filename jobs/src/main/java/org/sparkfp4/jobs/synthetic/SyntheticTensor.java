package org.sparkfp4.jobs.synthetic;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.safetensors.DType;

/**
 * A tensor to be made: its bytes are a function of the seed, its name and its element type alone.
 *
 * @param contents what a tensor of integers has, empty for random ones
 */
record SyntheticTensor(String name, DType dtype, List<Long> shape, Kind kind, List<Long> contents)
    implements Serializable {
  /** How the values are distributed. */
  enum Kind {
    /** Around 0, of a spread that differs from tensor to tensor and from expert to expert, with a few outliers. */
    WEIGHT,
    /** Around 1. */
    NORM,
    /** Codes of stored-quantized weights: any bits that are numbers. */
    CODES,
    /** Scales that make of codes what weights are, a few powers of two apart. */
    SCALE,
    /** The shape of a stored-quantized weight. */
    SHAPE
  }

  SyntheticTensor(String name, DType dtype, List<Long> shape, Kind kind) {
    this(name, dtype, shape, kind, List.of());
  }

  SyntheticTensor {
    shape = List.copyOf(shape);
    contents = List.copyOf(contents);
  }

  long elements() {
    return shape.stream().mapToLong(Long::longValue).reduce(1, Math::multiplyExact);
  }

  long bytes() {
    return dtype.bytes(elements());
  }
}
