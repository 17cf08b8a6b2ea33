package org.sparkfp4.kernels;

import org.sparkfp4.formats.BlockScaleLayout;
import org.sparkfp4.formats.NVFP4Tensor;
import org.sparkfp4.formats.Nvfp4;

/**
 * An {@link NVFP4Tensor} in native memory.
 *
 * @param isActivation whether the scales are words of activations, one after another; else they are in atoms, an
 *     expert's after another's
 * @param experts of weights; 1 of activations
 * @param rows of an expert, or tokens
 * @param k elements of a row, a multiple of 64
 * @param codes address of [experts, rows, k / 2]
 * @param scales address of the block scales
 * @param globalScale one an expert, or null for 1
 */
public record TensorMemory(boolean isActivation, int experts, int rows, int k, long codes, long scales,
    float[] globalScale) {
  public TensorMemory {
    if (experts < 0 || rows < 0 || k < 0 || k % NVFP4Tensor.ELEMS_PER_TILE != 0 || isActivation && experts != 1) {
      throw new IllegalArgumentException("Invalid tensor: [" + experts + ", " + rows + ", " + k
          + "], k must be a multiple of " + NVFP4Tensor.ELEMS_PER_TILE);
    }

    if (globalScale != null && globalScale.length != experts) {
      throw new IllegalArgumentException(
          "Invalid global scales: " + globalScale.length + " for " + experts + " experts, must be as many");
    }

    Math.multiplyExact(Math.multiplyExact((long) experts, (long) rows), 4L * k);
  }

  /** Elements of the tensor. */
  public long elements() {
    return (long) experts * rows * k;
  }

  /** Bytes of the block scales. */
  public long scaleBytes() {
    return isActivation ? elements() / Nvfp4.BLOCK
        : experts * BlockScaleLayout.ATOM_128X4.bytes(rows, k / Nvfp4.BLOCK);
  }
}
