package org.sparkfp4.plan;

/**
 * The global scale of a unit's input.
 *
 * @param value as the layout stores it
 * @param origin where it is from
 */
public record InputScale(float value, Origin origin) {
  /** Without statistics: 1 in every layout, as 2688 is the assumed amax. */
  public static final InputScale ASSUMED = new InputScale(1, Origin.ASSUMED);

  /** Where a scale is from. */
  public enum Origin {
    /** The unit's own activations. */
    MEASURED,
    /** The largest of the other experts', as no token reached this one, or none but zeros. */
    PEERS,
    /** No activations were seen, or none but zeros. */
    ASSUMED
  }
}
