package org.sparkfp4.kernels;

import org.sparkfp4.formats.Fp8DsMla;
import org.sparkfp4.formats.Mxfp4Codec;
import org.sparkfp4.formats.RmsNorm;

/** What all tiers ask of a call's sizes. */
final class KeyArguments {
  private KeyArguments() {}

  static void checkRows(long rows, long cols) {
    Mxfp4Codec.requireColumns(cols);
    if (rows < 0) {
      throw new IllegalArgumentException("Invalid rows: " + rows + ", must not be negative");
    }

    Math.multiplyExact(rows, cols * Float.BYTES);
  }

  static void checkLatents(RmsNorm norm, long tokens, KeyPages pages) {
    if (norm.weight().length != Fp8DsMla.LATENT) {
      throw new IllegalArgumentException(
          "Invalid norm: " + norm.weight().length + " weights, must be " + Fp8DsMla.LATENT);
    }

    checkRows(tokens, Fp8DsMla.LATENT);
    pages.require((long) pages.tokens() * Fp8DsMla.BYTES);
  }
}
