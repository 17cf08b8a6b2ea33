package org.sparkfp4.verify;

import java.nio.ByteBuffer;
import org.sparkfp4.checkpoint.LocatedTensor;

/**
 * Looks for block scales that no kernel can use: NaN would spread through the model, zero divides in some kernels and
 * makes others drop the block, and a sign has no meaning.
 */
final class ScaleScan {
  private static final int NAN = 0x7F;
  private static final int SIGN = 0x80;

  private final LocatedTensor scales;
  private long bad;
  private long firstPlace;
  private int firstByte;

  ScaleScan(LocatedTensor scales) {
    this.scales = scales;
  }

  /** Looks at some of the scales, of which the first is number {@code place} of the tensor. */
  void add(ByteBuffer bytes, long place) {
    for (int i = 0; i < bytes.limit(); i++) {
      int scale = bytes.get(i) & 0xFF;
      if (scale == 0 || scale == NAN || scale >= SIGN) {
        if (bad == 0) {
          firstPlace = place + i;
          firstByte = scale;
        }

        bad++;
      }
    }
  }

  void report(Differences differences) {
    if (bad > 0) {
      differences.add(String.format(
          "Tensor %s (%s) has %d block scales that are NaN, zero or negative, the first 0x%02X at [%d, %d]",
          scales.name(), scales.file(), bad, firstByte, firstPlace / scales.cols(), firstPlace % scales.cols()));
    }
  }
}
