package org.sparkfp4.verify;

import java.io.IOException;
import org.sparkfp4.checkpoint.LocatedTensor;

/** Compares tensors that must be the same in both checkpoints, byte by byte. */
final class CopyVerifier {
  private static final int PIECE = 1 << 20;

  private final TensorReader source;
  private final TensorReader quantized;
  private final Differences differences;
  private final byte[] expected = new byte[PIECE];
  private final byte[] actual = new byte[PIECE];

  CopyVerifier(TensorReader source, TensorReader quantized, Differences differences) {
    this.source = source;
    this.quantized = quantized;
    this.differences = differences;
  }

  void verify(CopiedTensor tensor) throws IOException {
    LocatedTensor original = tensor.source();
    for (long from = 0; from < original.length(); from += PIECE) {
      int length = (int) Math.min(PIECE, original.length() - from);
      int place = source.read(original, from, length, expected)
          .mismatch(quantized.read(tensor.copy(), from, length, actual));
      if (place >= 0) {
        differences.add("Tensor " + original.name() + " (" + tensor.copy().file() + ") is not as in the source ("
            + original.file() + "): byte " + (from + place) + " is " + (actual[place] & 0xFF) + ", there "
            + (expected[place] & 0xFF));
        return;
      }
    }
  }
}
