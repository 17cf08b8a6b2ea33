package org.sparkfp4.layouts;

/**
 * How far the quantized layers of a role are from their source.
 *
 * @param role the role, in words
 * @param layers number of layers
 * @param relativeError relative error in the Frobenius norm over all of them together
 * @param worst the largest relative error of one of them
 * @param worstModule the layer that has it
 */
public record RoleError(String role, long layers, double relativeError, double worst, String worstModule) {}
