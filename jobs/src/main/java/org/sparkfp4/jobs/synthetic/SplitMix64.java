package org.sparkfp4.jobs.synthetic;

import java.nio.charset.StandardCharsets;

/** Steele, Lea and Flood's SplitMix64 as a function of a counter: any word of a stream without those before it. */
final class SplitMix64 {
  static final long GAMMA = 0x9E3779B97F4A7C15L;

  private SplitMix64() {}

  /** Word {@code index} of the stream {@code key}. */
  static long word(long key, long index) {
    return mix(key + (index + 1) * GAMMA);
  }

  static long mix(long z) {
    z = (z ^ (z >>> 30)) * 0xBF58476D1CE4E5B9L;
    z = (z ^ (z >>> 27)) * 0x94D049BB133111EBL;
    return z ^ (z >>> 31);
  }

  /** The stream of a name under a seed. */
  static long key(long seed, String name) {
    long hash = 0xCBF29CE484222325L; // FNV-1a
    for (byte b : name.getBytes(StandardCharsets.UTF_8)) {
      hash = (hash ^ (b & 0xFF)) * 0x100000001B3L;
    }

    return mix(hash ^ mix(seed + GAMMA));
  }

  /** A double in [0, 1) from a word. */
  static double unit(long word) {
    return (word >>> 11) * 0x1p-53;
  }
}
