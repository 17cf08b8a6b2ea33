package org.sparkfp4.kernels;

import java.util.Arrays;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.Mxfp4;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.Nvfp4Recipe;

/** What all tiers ask of a call's segments, and what they all write for a unit of zeros. */
final class Segments {
  private Segments() {}

  static void check(long[] addresses, long[] counts) {
    if (addresses.length != counts.length) {
      throw new IllegalArgumentException(
          "Invalid segments: " + addresses.length + " addresses and " + counts.length + " sizes, must be as many");
    }

    for (int i = 0; i < counts.length; i++) {
      if (counts[i] < 0 || counts[i] > 0 && addresses[i] == 0) {
        throw new IllegalArgumentException(
            "Invalid segment " + i + ": size " + counts[i] + " at address " + addresses[i]);
      }
    }
  }

  /** The same of segments in two parts. */
  static void check(long[] codes, long[] scales, long[] rows) {
    check(codes, rows);
    check(scales, rows);
  }

  /**
   * The blocks of each segment.
   *
   * @throws IllegalArgumentException if the segments do not agree in number, or have no whole blocks
   */
  static long[] blocks(long[] addresses, long[] rows, long cols, Object[] sums) {
    check(addresses, rows);
    if (cols < 0 || cols % Nvfp4.BLOCK != 0) {
      throw new IllegalArgumentException("Invalid columns: " + cols + ", must be a multiple of " + Nvfp4.BLOCK);
    }

    if (sums != null && sums.length != rows.length) {
      throw new IllegalArgumentException(
          "Invalid error sums: " + sums.length + " for " + rows.length + " segments, must be as many");
    }

    long[] blocks = new long[rows.length];
    for (int i = 0; i < rows.length; i++) {
      blocks[i] = Math.multiplyExact(rows[i], cols) / Nvfp4.BLOCK;
    }

    return blocks;
  }

  /** The blocks of each segment of an MXFP4 source. */
  static long[] mxfp4Blocks(long[] codes, long[] rows, long cols, Object[] sums) {
    if (cols % Mxfp4.BLOCK != 0) {
      throw new IllegalArgumentException("Invalid columns: " + cols + ", must be a multiple of " + Mxfp4.BLOCK);
    }

    return blocks(codes, rows, cols, sums);
  }

  /** What a cast checks of a unit whose blocks it need not look at otherwise. */
  static void checkExponents(Nvfp4Kernel kernel, long[] scales, long[] blocks, int kmax) {
    long[] counts = Arrays.stream(blocks).map(count -> count * Nvfp4.BLOCK / Mxfp4.BLOCK).toArray();
    if (kernel.largestExponent(scales, counts) > kmax) {
      throw Mxfp4.aboveLargest(kmax);
    }
  }

  /** What a tensor to dequantize must be. */
  static void checkTensor(long codes, long scales, long rows, long cols) {
    if (cols < 0) {
      throw new IllegalArgumentException("Invalid columns: " + cols + ", must not be negative");
    }

    check(new long[] {codes}, new long[] {scales}, new long[] {rows});
    Math.multiplyExact(rows, cols);
  }

  /** A unit of zeros: its sums are zero too, for squares of such weights vanish in binary32. */
  static void encodeZero(Nvfp4Recipe recipe, long[] blocks, long packedAddress, long scalesAddress) {
    encodeZero(recipe, blocks, packedAddress, scalesAddress, MemoryUtil::setMemory);
  }

  /** The same where the memory is another's. */
  static void encodeZero(Nvfp4Recipe recipe, long[] blocks, long packedAddress, long scalesAddress, Filler filler) {
    long all = 0;
    for (long segment : blocks) {
      all = Math.addExact(all, segment);
    }

    if (all > 0) {
      filler.fill(packedAddress, all * Nvfp4.BLOCK / 2, (byte) 0);
      filler.fill(scalesAddress, all, (byte) recipe.zeroScale());
    }
  }

  /** Sets memory to one byte. */
  interface Filler {
    void fill(long address, long bytes, byte value);
  }
}
