package org.sparkfp4.verify;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Comparator;
import java.util.Set;
import java.util.stream.Collectors;
import org.sparkfp4.files.Sha256;

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
    Sha256 digest = new Sha256();
    digest.update(module);
    return (ByteBuffer.wrap(digest.bytes()).getLong() >>> 11) * 0x1p-53;
  }
}
