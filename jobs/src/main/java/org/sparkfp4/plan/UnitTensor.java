package org.sparkfp4.plan;

import org.sparkfp4.safetensors.TensorInfo;

/**
 * A tensor that a member of a unit becomes.
 *
 * @param member index of the member in its unit
 * @param part what the tensor holds
 * @param output its name, dtype, shape and place
 */
public record UnitTensor(int member, Part part, TensorInfo output) {
  /** What a tensor of a quantized layer holds. */
  public enum Part {
    /** E2M1 codes, two a byte, {@code [rows, K/2]}. */
    PACKED,
    /** E4M3 block scales, {@code [rows, K/16]}. */
    SCALES,
    /** The same in words of four, bytes 1 and 2 of each exchanged, {@code [rows, K/16]}, K a multiple of 64. */
    SCALE_WORDS,
    /** The unit's global scale as the layout stores it, fp32. */
    GLOBAL_SCALE,
    /** The activations' global scale as the layout stores it, fp32: 1.0 where there are no statistics. */
    INPUT_SCALE
  }
}
