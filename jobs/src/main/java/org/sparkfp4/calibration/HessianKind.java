package org.sparkfp4.calibration;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** How much of the mean of {@code x xᵀ} over a layer's inputs x is kept. */
public enum HessianKind {
  /** Its diagonal alone, which is the mean square of each column. */
  NONE,
  /** The 16x16 blocks on its diagonal too, {@code [K/16, 16, 16]}. */
  LOCAL,
  /** All of it, {@code [K, K]}, and that of held-out tokens. */
  FULL;

  /**
   * The kind of that name.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  public static HessianKind named(String name) {
    return Arrays.stream(values())
        .filter(kind -> kind.optionName().equals(name))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("Invalid hessian: " + name + "; known are "
            + Arrays.stream(values()).map(HessianKind::optionName).collect(Collectors.joining(", "))));
  }

  /** The name that {@code --hessian} takes. */
  public String optionName() {
    return name().toLowerCase(Locale.ROOT);
  }
}
