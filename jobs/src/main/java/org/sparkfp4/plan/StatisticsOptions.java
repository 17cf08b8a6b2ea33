package org.sparkfp4.plan;

/**
 * How statistics of activations are used.
 *
 * @param digest SHA-256 of the statistics' index, which has those of its files
 * @param inputScale what the inputs' global scales are made of, as {@code --input-scale} has it; null where activations
 *     stay in high precision
 * @param weighting what errors are weighed by, as {@code --weighting} has it; null for searches that weigh none
 * @param damping what GPTQ adds to a Hessian's diagonal, in units of its mean; null for searches without it
 */
public record StatisticsOptions(String digest, String inputScale, String weighting, Double damping) {}
