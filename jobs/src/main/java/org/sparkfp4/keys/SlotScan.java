package org.sparkfp4.keys;

import java.io.IOException;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.source.FileRanges;

/** Reads a slot map from end to end, a piece at a time. */
final class SlotScan {
  private static final int PIECE = 1 << 20;

  /** Takes a token and its slot. */
  interface Visitor {
    void visit(long token, long slot);
  }

  private SlotScan() {}

  static void scan(FileRanges ranges, BufferAllocator allocator, KeyTensor slots, long tokens, Visitor visitor)
      throws IOException {
    for (long first = 0; first < tokens; first += PIECE) {
      int count = (int) Math.min(PIECE, tokens - first);
      try (ArrowBuf piece = ranges.read(
          allocator, slots.file(), slots.offset() + first * Long.BYTES, (long) count * Long.BYTES)) {
        for (int i = 0; i < count; i++) {
          visitor.visit(first + i, piece.getLong((long) i * Long.BYTES));
        }
      }
    }
  }
}
