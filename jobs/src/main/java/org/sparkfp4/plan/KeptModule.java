package org.sparkfp4.plan;

/**
 * A module with a matrix that is not quantized.
 *
 * @param module its name: the tensor's name without {@code .weight}
 * @param reason why, in words: its role, or that its K is no multiple of 16
 * @param format how it stays stored, or null where it is in high precision
 */
public record KeptModule(String module, String reason, KeptFormat format) {
  /** A module in high precision. */
  public KeptModule(String module, String reason) {
    this(module, reason, null);
  }
}
