package org.sparkfp4.report;

/**
 * A part of a run.
 *
 * @param name what was done
 * @param seconds how long it took
 * @param bytesIn bytes that it read, 0 where that does not say anything
 * @param bytesOut bytes that it wrote, likewise
 */
public record Stage(String name, double seconds, long bytesIn, long bytesOut) {}
