package org.sparkfp4.formats;

import java.util.Locale;

/** What {@link ScaleSearch#WEIGHTED} weighs errors by: the statistics of a layer's input x, K channels wide. */
public enum Weighting {
  /** E[x²] of each channel: binary32 [K]. */
  DIAGONAL(1),
  /** E[x xᵀ] of the 16 channels of a block: binary32 [K / 16, 16, 16]. */
  HESSIAN(Nvfp4.BLOCK);

  private final int rows;

  Weighting(int rows) {
    this.rows = rows;
  }

  /**
   * The weighting of that name.
   *
   * @throws IllegalArgumentException if there is none
   */
  public static Weighting named(String name) {
    for (Weighting weighting : values()) {
      if (weighting.optionName().equals(name)) {
        return weighting;
      }
    }

    throw new IllegalArgumentException("Invalid weighting: " + name + "; known are diagonal, hessian");
  }

  /** The name that {@code --weighting} takes. */
  public String optionName() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Values of a layer with {@code cols} input channels. */
  public long values(long cols) {
    return Math.multiplyExact(cols, rows);
  }

  /** Values of one block. */
  int blockValues() {
    return Nvfp4.BLOCK * rows;
  }
}
