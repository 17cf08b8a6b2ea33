package org.sparkfp4.convert;

import java.nio.ByteBuffer;
import org.sparkfp4.kernels.LayoutKernel;
import org.sparkfp4.layouts.ExpertArrangement;

/**
 * Moves an expert's bytes between a checkpoint's rows and a runtime's layout, in native memory that is used again from
 * expert to expert. Matrices come and go row-major, gate before up.
 */
final class ExpertArranger {
  private final LayoutKernel kernel;
  private final NativeBytes arranged = new NativeBytes();
  private final NativeBytes[] members = {new NativeBytes(), new NativeBytes()};

  ExpertArranger(LayoutKernel kernel) {
    this.kernel = kernel;
  }

  /** An expert's codes as the runtime has them; valid until the next call. */
  ByteBuffer codes(ExpertArrangement of, byte[][] matrices) {
    ByteBuffer out = arranged.of(of.codeBytes());
    kernel.arrangeCodes(of.codes(), of.shape(), filled(of, matrices), arranged.address());
    return out;
  }

  /** An expert's block scales as the runtime has them; valid until the next call. */
  ByteBuffer scales(ExpertArrangement of, byte[][] matrices) {
    ByteBuffer out = arranged.of(of.scaleBytes());
    kernel.arrangeScales(of.scales(), of.shape(), filled(of, matrices), 1, arranged.address());
    return out;
  }

  /** The codes of each matrix. */
  byte[][] restoredCodes(ExpertArrangement of, byte[] bytes) {
    arranged.of(bytes);
    kernel.restoreCodes(of.codes(), of.shape(), arranged.address(), empty(of, of.shape().memberCodes()));
    return taken(of);
  }

  /** The block scales of each matrix. */
  byte[][] restoredScales(ExpertArrangement of, byte[] bytes) {
    arranged.of(bytes);
    kernel.restoreScales(of.scales(), of.shape(), arranged.address(), 1, empty(of, of.shape().memberScales()));
    return taken(of);
  }

  /** The index of the first byte above a limit, or -1. */
  long firstAbove(byte[] bytes, int limit) {
    arranged.of(bytes);
    return kernel.firstAbove(arranged.address(), bytes.length, limit);
  }

  /** Addresses of matrices in the runtime's order. */
  private long[] filled(ExpertArrangement of, byte[][] matrices) {
    for (int m = 0; m < matrices.length; m++) {
      members[m].of(matrices[m]);
    }

    return addresses(of);
  }

  private long[] empty(ExpertArrangement of, long length) {
    for (int m = 0; m < of.shape().members(); m++) {
      members[m].of(length);
    }

    return addresses(of);
  }

  private long[] addresses(ExpertArrangement of) {
    long[] addresses = new long[of.shape().members()];
    for (int m = 0; m < addresses.length; m++) {
      addresses[of.place(m)] = members[m].address();
    }

    return addresses;
  }

  private byte[][] taken(ExpertArrangement of) {
    byte[][] matrices = new byte[of.shape().members()][];
    for (int m = 0; m < matrices.length; m++) {
      matrices[m] = members[m].copy();
    }

    return matrices;
  }
}
