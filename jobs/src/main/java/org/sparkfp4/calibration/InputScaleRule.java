package org.sparkfp4.calibration;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** What the activations' global scale is made of: an amax, which the largest block scale stands for. */
public enum InputScaleRule {
  /** The largest magnitude that was seen. */
  AMAX {
    @Override
    public float amax(ModuleStatistics module) {
      return module.amax();
    }
  },
  /** What one block in ten thousand exceeds. */
  PERCENTILE {
    @Override
    public float amax(ModuleStatistics module) {
      return module.percentile();
    }
  },
  /**
   * As much above what was seen as small blocks allow: the block of the first percentile stays where E4M3 has all its
   * bits, and the rest of the range is room for larger activations than calibration had.
   */
  HEADROOM {
    @Override
    public float amax(ModuleStatistics module) {
      return module.headroom();
    }
  };

  /** The amax of a module that saw tokens. */
  public abstract float amax(ModuleStatistics module);

  /**
   * The rule of that name.
   *
   * @throws IllegalArgumentException if there is none; the message lists the names
   */
  public static InputScaleRule named(String name) {
    return Arrays.stream(values())
        .filter(rule -> rule.optionName().equals(name))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("Invalid input scale: " + name + "; known are "
            + Arrays.stream(values()).map(InputScaleRule::optionName).collect(Collectors.joining(", "))));
  }

  /** The name that {@code --input-scale} takes. */
  public String optionName() {
    return name().toLowerCase(Locale.ROOT);
  }
}
