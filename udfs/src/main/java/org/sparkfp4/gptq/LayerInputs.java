package org.sparkfp4.gptq;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Optional;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.InvalidImportanceException;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.kernels.MatrixMemory;
import org.sparkfp4.kernels.ProductKernel;

/**
 * What is known of a layer's inputs x, K channels wide: the mean of x xᵀ over some tokens, and over others that were
 * held out. Both are binary32 {@code [K, K]}, little-endian, one behind the other.
 *
 * <p>A factor of them takes 4 bytes times K² of native memory, 209 MB of K 7168.
 */
public final class LayerInputs {
  private final int cols;
  private final FloatBuffer hessian;
  private final FloatBuffer heldOut;

  /**
   * Inputs as they lie in native memory, which must stay valid.
   *
   * @param address of {@link #bytes} bytes
   * @throws InvalidImportanceException if a value cannot be: NaN or infinite, or a negative one on a diagonal
   */
  public LayerInputs(long address, long cols) {
    this.cols = Math.toIntExact(cols);
    ByteBuffer all =
        MemoryUtil.directBuffer(address, Math.toIntExact(bytes(cols))).order(ByteOrder.LITTLE_ENDIAN);
    FloatBuffer values = all.asFloatBuffer();
    int each = this.cols * this.cols;
    this.hessian = values.slice(0, each);
    this.heldOut = values.slice(each, each);
    check(hessian);
    check(heldOut);
  }

  /** Bytes of inputs of so many channels. */
  public static long bytes(long cols) {
    return Math.multiplyExact(2L * Float.BYTES, Math.multiplyExact(cols, cols));
  }

  private void check(FloatBuffer values) {
    for (int i = 0; i < cols; i++) {
      for (int j = 0; j < cols; j++) {
        float value = values.get(i * cols + j);
        if (!Float.isFinite(value) || i == j && value < 0) {
          throw new InvalidImportanceException(j, value);
        }
      }
    }
  }

  /** Writes the 16x16 blocks on the diagonal, binary32 {@code [K/16, 16, 16]}, little-endian. */
  public void writeLocal(ByteBuffer into) {
    FloatBuffer out = into.order(ByteOrder.LITTLE_ENDIAN).asFloatBuffer();
    for (int row = 0; row < cols; row++) {
      out.put(hessian.slice(row * cols + row / Nvfp4.BLOCK * Nvfp4.BLOCK, Nvfp4.BLOCK));
    }
  }

  Optional<HessianFactor> factor(double damping, ProductKernel kernel, MatrixMemory memory) {
    return HessianFactor.of(hessian, cols, damping, kernel, memory);
  }

  OutputError heldOutError(ProductKernel kernel) {
    return new OutputError(heldOut, cols, kernel);
  }

  int cols() {
    return cols;
  }
}
