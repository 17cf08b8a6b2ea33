package org.sparkfp4.checkpoint;

import com.fasterxml.jackson.annotation.JsonCreator;
import com.fasterxml.jackson.annotation.JsonProperty;
import java.io.Serializable;
import java.util.List;
import org.sparkfp4.safetensors.DType;

/**
 * A tensor of a checkpoint, or a slice of one, and where its bytes are.
 *
 * @param name the tensor's name; a slice's is the one that the tensor would have if it were stored by itself
 * @param dtype its element type
 * @param shape its dimensions, outermost first; empty for a scalar
 * @param file the shard that holds it, a name inside the checkpoint's folder
 * @param offset its first byte in that file (absolute: header included)
 * @param length bytes of its elements
 * @param strides bytes from an element to the next, one a dimension, where the elements of a slice do not follow one
 *     another in the file; empty where they do
 */
public record LocatedTensor(
    String name, DType dtype, List<Long> shape, String file, long offset, long length, List<Long> strides)
    implements Serializable {
  @JsonCreator
  public LocatedTensor(
      @JsonProperty(value = "name", required = true) String name,
      @JsonProperty(value = "dtype", required = true) DType dtype,
      @JsonProperty(value = "shape", required = true) List<Long> shape,
      @JsonProperty(value = "file", required = true) String file,
      @JsonProperty(value = "offset", required = true) long offset,
      @JsonProperty(value = "length", required = true) long length,
      @JsonProperty(value = "strides", required = true) List<Long> strides) {
    this.name = name;
    this.dtype = dtype;
    this.shape = List.copyOf(shape);
    this.file = file;
    this.offset = offset;
    this.length = length;
    this.strides = List.copyOf(strides);
  }

  /** A tensor whose elements follow one another. */
  public LocatedTensor(String name, DType dtype, List<Long> shape, String file, long offset, long length) {
    this(name, dtype, shape, file, offset, length, List.of());
  }

  /** Rows of the tensor seen as a matrix: the product of all dimensions but the last; 1 for scalars and vectors. */
  public long rows() {
    long rows = 1;
    for (int i = 0; i < shape.size() - 1; i++) {
      rows *= shape.get(i);
    }

    return rows;
  }

  /** Columns of the tensor seen as a matrix: its last dimension; 1 for a scalar. */
  public long cols() {
    return shape.isEmpty() ? 1 : shape.get(shape.size() - 1);
  }
}
