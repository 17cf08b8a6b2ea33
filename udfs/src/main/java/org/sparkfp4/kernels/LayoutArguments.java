package org.sparkfp4.kernels;

import org.sparkfp4.formats.Arrangement;
import org.sparkfp4.formats.ElementType;

/** What all tiers ask of a call that moves tensors between layouts. */
final class LayoutArguments {
  private LayoutArguments() {}

  static void checkMembers(Arrangement shape, long[] members) {
    if (members.length != shape.members()) {
      throw new IllegalArgumentException(
          "Invalid members: " + members.length + " addresses for " + shape.members() + ", must be as many");
    }
  }

  static void checkDecoded(ElementType type) {
    if (type == ElementType.F16) {
      throw new IllegalArgumentException("Invalid type to decode to: " + type + ", must be F32 or BF16");
    }
  }
}
