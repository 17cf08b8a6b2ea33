package org.sparkfp4.plan;

/**
 * A tensor of the source that only says how another is stored, beside its scales, and has no place in the output.
 *
 * @param name its name
 * @param length its bytes
 */
public record DroppedTensor(String name, long length) {}
