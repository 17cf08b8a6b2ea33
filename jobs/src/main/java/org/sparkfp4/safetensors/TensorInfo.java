package org.sparkfp4.safetensors;

import java.io.Serializable;
import java.util.Comparator;
import java.util.List;

/**
 * One tensor of a safetensors header.
 *
 * @param name the tensor's name
 * @param dtype its element type
 * @param shape its dimensions, outermost first; empty for a scalar
 * @param begin first byte, relative to the start of the file's data section
 * @param end one past its last byte, likewise
 */
public record TensorInfo(String name, DType dtype, List<Long> shape, long begin, long end) implements Serializable {
  /** The order of the tensors' bytes; an empty tensor comes before the one that begins where it does. */
  static final Comparator<TensorInfo> BY_PLACE =
      Comparator.comparingLong(TensorInfo::begin).thenComparingLong(TensorInfo::end);

  public TensorInfo {
    shape = List.copyOf(shape);
  }

  public long length() {
    return end - begin;
  }
}
