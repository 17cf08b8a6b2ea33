package org.sparkfp4.plan;

/**
 * A module with a matrix that stays in the source's precision.
 *
 * @param module its name: the tensor's name without {@code .weight}
 * @param reason why, in words: its role, or that its K is no multiple of 16
 */
public record KeptModule(String module, String reason) {}
