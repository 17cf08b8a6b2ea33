package org.sparkfp4.checkpoint;

import java.io.Serializable;
import java.util.List;
import org.sparkfp4.safetensors.DType;

/**
 * A tensor of a checkpoint and where its bytes are.
 *
 * @param name the tensor's name
 * @param dtype its element type
 * @param shape its dimensions, outermost first; empty for a scalar
 * @param file the shard that holds it, a name inside the checkpoint's folder
 * @param offset its first byte in that file (absolute: header included)
 * @param length its bytes
 */
public record LocatedTensor(String name, DType dtype, List<Long> shape, String file, long offset, long length)
    implements Serializable {
  public LocatedTensor {
    shape = List.copyOf(shape);
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
