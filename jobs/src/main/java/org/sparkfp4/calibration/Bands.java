package org.sparkfp4.calibration;

import org.sparkfp4.formats.Nvfp4;

/**
 * Cuts the columns of an input into bands that are summed one after another, so that a task's sums have a bound
 * whatever K and the number of experts are. A band of columns has the rows of the Hessian of these columns, from its
 * diagonal on.
 */
final class Bands {
  private static final int BLOCK_BYTES = Nvfp4.BLOCK * Double.BYTES;

  private final long bytes;
  private final HessianKind hessian;

  /** @param bytes what the sums of a task may take, unless a band of 16 columns takes more */
  Bands(HessianKind hessian, long bytes) {
    this.hessian = hessian;
    this.bytes = bytes;
  }

  /** Columns of every band of an input but the last, a multiple of 16. */
  int width(InputModule input) {
    int width = input.cols();
    while (width > Nvfp4.BLOCK && bytes(input, width) > bytes) {
      width = Math.max(Nvfp4.BLOCK, width / 2 / Nvfp4.BLOCK * Nvfp4.BLOCK);
    }

    return width;
  }

  /** How many bands an input has. */
  int count(InputModule input) {
    int width = width(input);
    return (input.cols() + width - 1) / width;
  }

  private long bytes(InputModule input, int width) {
    long blocks = width / Nvfp4.BLOCK;
    long sums = blocks * BLOCK_BYTES + BlockAmaxHistogram.BINS * (long) Long.BYTES;
    if (hessian != HessianKind.NONE) {
      sums += blocks * BLOCK_BYTES * Nvfp4.BLOCK;
    }

    if (hessian == HessianKind.FULL) {
      // the tokens' own and the held-out ones', and the chunks in front of them
      sums += 2L * Double.BYTES * (width + OuterProducts.chunk(width)) * input.cols();
    }

    return input.entries() * sums;
  }
}
