package org.sparkfp4.verify;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collection;
import java.util.Comparator;
import java.util.Set;
import java.util.stream.Collectors;

/** The layers that are quantized again: chosen by a hash of the name, so that every run takes the same. */
final class Sample {
  private Sample() {}

  /** So many of the modules as {@code size} says. */
  static Set<String> of(Collection<String> modules, SampleSize size) {
    return modules.stream()
        .map(module -> new Placed(module, place(module)))
        .sorted(Comparator.comparingDouble(Placed::place).thenComparing(Placed::module))
        .limit(size.of(modules.size()))
        .map(Placed::module)
        .collect(Collectors.toSet());
  }

  private record Placed(String module, double place) {}

  /** A number in [0, 1) that a name gives. */
  private static double place(String module) {
    try {
      byte[] digest = MessageDigest.getInstance("SHA-256").digest(module.getBytes(StandardCharsets.UTF_8));
      return (ByteBuffer.wrap(digest).getLong() >>> 11) * 0x1p-53;
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Cannot find SHA-256, which every Java platform must have", e);
    }
  }
}
