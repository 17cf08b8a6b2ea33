package org.sparkfp4.convert;

import java.nio.ByteBuffer;
import org.sparkfp4.formats.Bytes;
import org.sparkfp4.layouts.ExpertArrangement;

/**
 * Moves an expert's bytes between a checkpoint's rows and a runtime's layout, in native memory that is used again from
 * expert to expert. Matrices come and go row-major, gate before up.
 */
final class ExpertArranger {
  private final NativeBytes arranged = new NativeBytes();
  private final NativeBytes[] members = {new NativeBytes(), new NativeBytes()};

  /** An expert's codes as the runtime has them; valid until the next call. */
  ByteBuffer codes(ExpertArrangement of, byte[][] matrices) {
    ByteBuffer out = arranged.of(of.codeBytes());
    of.codes().arrange(of.shape(), filled(of, matrices), Bytes.of(out));
    return out;
  }

  /** An expert's block scales as the runtime has them; valid until the next call. */
  ByteBuffer scales(ExpertArrangement of, byte[][] matrices) {
    ByteBuffer out = arranged.of(of.scaleBytes());
    of.scales().arrange(of.shape(), filled(of, matrices), 1, Bytes.of(out));
    return out;
  }

  /** The codes of each matrix. */
  byte[][] restoredCodes(ExpertArrangement of, byte[] bytes) {
    Bytes[] out = empty(of, of.shape().memberCodes());
    of.codes().restore(of.shape(), Bytes.of(arranged.of(bytes)), out);
    return taken(of);
  }

  /** The block scales of each matrix. */
  byte[][] restoredScales(ExpertArrangement of, byte[] bytes) {
    Bytes[] out = empty(of, of.shape().memberScales());
    of.scales().restore(of.shape(), Bytes.of(arranged.of(bytes)), 1, out);
    return taken(of);
  }

  /** Matrices in the runtime's order. */
  private Bytes[] filled(ExpertArrangement of, byte[][] matrices) {
    Bytes[] views = new Bytes[matrices.length];
    for (int m = 0; m < matrices.length; m++) {
      views[of.place(m)] = Bytes.of(members[m].of(matrices[m]));
    }

    return views;
  }

  private Bytes[] empty(ExpertArrangement of, long length) {
    Bytes[] views = new Bytes[of.shape().members()];
    for (int m = 0; m < views.length; m++) {
      views[of.place(m)] = Bytes.of(members[m].of(length));
    }

    return views;
  }

  private byte[][] taken(ExpertArrangement of) {
    byte[][] matrices = new byte[of.shape().members()][];
    for (int m = 0; m < matrices.length; m++) {
      matrices[m] = members[m].copy();
    }

    return matrices;
  }
}
