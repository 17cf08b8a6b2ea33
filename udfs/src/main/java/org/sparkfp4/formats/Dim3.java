package org.sparkfp4.formats;

/** Three tile indices of an {@link NVFP4Tensor}: x the slowest, z the fastest. */
public record Dim3(int x, int y, int z) {
  /** A component by its number, 0 for x. */
  public int component(int index) {
    return switch (index) {
      case 0 -> x;
      case 1 -> y;
      case 2 -> z;
      default -> throw new IllegalArgumentException("Invalid component: " + index + ", must be 0, 1 or 2");
    };
  }
}
