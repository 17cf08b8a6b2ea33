package org.sparkfp4.plan;

/**
 * How a weight stays stored that is kept in the source's precision.
 *
 * @param scheme codes and scales, as {@link org.sparkfp4.formats.WeightScheme#parse} takes it
 * @param staticActivations whether a stored scale quantizes its activations
 */
public record KeptFormat(String scheme, boolean staticActivations) {}
