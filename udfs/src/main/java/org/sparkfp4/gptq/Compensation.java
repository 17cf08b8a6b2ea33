package org.sparkfp4.gptq;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Optional;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.formats.ErrorSums;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;
import org.sparkfp4.formats.WeightRows;
import org.sparkfp4.kernels.MatrixMemory;
import org.sparkfp4.kernels.ProductKernel;

/**
 * Gives encoded weights other codes under the same scales, such that errors make up for each other, where that holds
 * for inputs that had no say in it.
 */
public final class Compensation implements AutoCloseable {
  /** Rows that are worked on at once: what is done once a tile, as to read a Hessian, is little beside their products. */
  private static final int TILE = 128;

  private final LayerInputs inputs;
  private final ProductKernel kernel;
  private final MatrixMemory memory;
  private final Optional<NearestPlane> plane;

  /**
   * @param inputs the layers' common inputs
   * @param damping what is added to the Hessian's diagonal, in units of its mean
   * @param kernel what multiplies matrices; all give the same codes
   * @param allocator of the factor of the inputs' Hessian, and of rows that are worked on
   */
  public Compensation(LayerInputs inputs, double damping, ProductKernel kernel, BufferAllocator allocator) {
    this.inputs = inputs;
    this.kernel = kernel;
    this.memory = new MatrixMemory(allocator);
    this.plane = factor(damping);
  }

  private Optional<NearestPlane> factor(double damping) {
    try {
      return inputs.factor(damping, kernel, memory).map(factor -> new NearestPlane(factor, kernel));
    } catch (RuntimeException | Error e) {
      memory.close();
      throw e;
    }
  }

  @Override
  public void close() {
    memory.close();
  }

  /**
   * Replaces the codes of a layer's rows if the error of the held-out outputs falls by it.
   *
   * @param weights what is encoded
   * @param packed codes [rows, K/2], from position to limit; changed or not as a whole
   * @param scales block scales [rows, K/16], from position to limit
   * @param globalScale as the checkpoint stores it
   * @return the sums of the new codes; nothing if they stay
   */
  public Optional<ErrorSums> improve(
      WeightRows weights, long rows, Nvfp4Recipe recipe, ByteBuffer packed, ByteBuffer scales, float globalScale) {
    if (plane.isEmpty()) {
      return Optional.empty();
    }

    OutputError error = inputs.heldOutError(kernel);
    ByteBuffer compensated = ByteBuffer.allocate(packed.remaining());
    double before = 0;
    double after = 0;
    for (long first = 0; first < rows; first += TILE) {
      int count = (int) Math.min(TILE, rows - first);
      try (MatrixMemory scratch = new MatrixMemory(memory.allocator())) {
        WeightTile tile = new WeightTile(count, inputs.cols(), scratch);
        load(tile, first, weights, recipe, packed, scales, globalScale);
        before += error.of(tile, scratch);
        WeightTile moved = tile.withoutCodes(scratch);
        plane.get().encode(moved, scratch);
        after += error.of(moved, scratch);
        store(moved, compensated);
      }
    }

    if (!(after < before)) {
      return Optional.empty();
    }

    packed.slice().put(compensated.flip());
    return Optional.of(sums(weights, rows, recipe, compensated, scales, globalScale));
  }

  private static void load(
      WeightTile tile,
      long first,
      WeightRows weights,
      Nvfp4Recipe recipe,
      ByteBuffer packed,
      ByteBuffer scales,
      float globalScale) {
    int blocks = tile.cols() / Nvfp4.BLOCK;
    float[] w = new float[Nvfp4.BLOCK];
    for (int row = 0; row < tile.rows(); row++) {
      for (int block = 0; block < blocks; block++) {
        int at = Math.toIntExact((first + row) * blocks + block);
        weights.load(first + row, block, w);
        tile.setFactor(row, block, recipe.dequantFactor(scales.get(scales.position() + at), globalScale));
        for (int i = 0; i < Nvfp4.BLOCK; i++) {
          int pair = packed.get(packed.position() + (at * Nvfp4.BLOCK + i) / 2);
          tile.setWeight(row, block * Nvfp4.BLOCK + i, w[i]);
          tile.setCode(row, block * Nvfp4.BLOCK + i, pair >> i % 2 * 4 & 0xF);
        }
      }
    }
  }

  private static void store(WeightTile tile, ByteBuffer packed) {
    for (int row = 0; row < tile.rows(); row++) {
      for (int col = 0; col < tile.cols(); col += 2) {
        packed.put((byte) (tile.code(row, col) | tile.code(row, col + 1) << 4));
      }
    }
  }

  private ErrorSums sums(
      WeightRows weights,
      long rows,
      Nvfp4Recipe recipe,
      ByteBuffer packed,
      ByteBuffer scales,
      float globalScale) {
    ErrorSums sums = new ErrorSums();
    ByteBuffer codes = packed.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    int blocks = inputs.cols() / Nvfp4.BLOCK;
    float[] w = new float[Nvfp4.BLOCK];
    for (long row = 0; row < rows; row++) {
      for (int block = 0; block < blocks; block++) {
        int at = Math.toIntExact(row * blocks + block);
        weights.load(row, block, w);
        float factor = recipe.dequantFactor(scales.get(scales.position() + at), globalScale);
        sums.addBlock(w, codes.getLong(at * Long.BYTES), factor);
      }
    }

    return sums;
  }
}
