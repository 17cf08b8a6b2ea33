package org.sparkfp4.plan;

/**
 * How statistics of activations are used.
 *
 * @param digest SHA-256 of the statistics' index, which has those of its files
 * @param inputScale what the inputs' global scales are made of, as {@code --input-scale} has it; null where activations
 *     stay in high precision
 */
public record StatisticsOptions(String digest, String inputScale) {}
