package org.sparkfp4.kernels;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.arrow.memory.util.MemoryUtil;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Nvfp4Recipe;

/** Measures a kernel for a moment, so that who must wait for a slow one knows how long. */
final class TrialRate {
  private static final long ROWS = 64;
  private static final long COLS = 1024;
  private static final long NANOSECONDS = 300_000_000L;

  private TrialRate() {}

  /** Bytes of bf16 that the kernel encodes a second on this core, the compiler's warm-up left out. */
  static double bytesPerSecond(Nvfp4Kernel kernel) {
    int bytes = Math.toIntExact(ROWS * COLS * Short.BYTES);
    ByteBuffer memory = ByteBuffer.allocateDirect(2 * bytes);
    Random random = new Random(1);
    for (int i = 0; i < bytes; i += Short.BYTES) {
      // bits of numbers between 2^-7 and 1
      memory.putShort(i, Short.reverseBytes((short) (0x3c00 + random.nextInt(0x380) | random.nextInt(2) << 15)));
    }

    try {
      long source = MemoryUtil.getByteBufferAddress(memory);
      encodeFor(kernel, source, bytes);
      return encodeFor(kernel, source, bytes);
    } finally {
      Reference.reachabilityFence(memory);
    }
  }

  private static double encodeFor(Nvfp4Kernel kernel, long source, long bytes) {
    long packed = source + bytes;
    long scales = packed + ROWS * COLS / 2;
    long done = 0;
    long begin = System.nanoTime();
    long now = begin;
    while (now - begin < NANOSECONDS) {
      kernel.encode(
          Nvfp4Recipe.MODELOPT, BlockSearch.RTN, ElementType.BF16, new long[] {source}, new long[] {ROWS}, COLS, 1f,
          packed, scales, null);
      done += bytes;
      now = System.nanoTime();
    }

    return done * 1e9 / (now - begin);
  }
}
