package org.sparkfp4.keys;

import java.io.IOException;
import org.apache.arrow.memory.BufferAllocator;
import org.sparkfp4.source.FileRanges;

/** The tokens whose slots lie in a range, in the order of the tokens. */
final class SlottedTokens {
  private final long[] tokens;
  private final long[] slots;
  private int count;

  private SlottedTokens(int capacity) {
    this.tokens = new long[capacity];
    this.slots = new long[capacity];
  }

  /**
   * Finds them.
   *
   * @throws org.sparkfp4.output.BadSourceException where two tokens have one slot
   */
  static SlottedTokens of(CacheTensor tensor, RangeImage image, FileRanges files, BufferAllocator allocator)
      throws IOException {
    SlottedTokens found = new SlottedTokens(image.capacity());
    if (tensor.slots() == null) {
      long end = Math.min(tensor.tokens(), image.firstSlot() + image.capacity());
      for (long token = image.firstSlot(); token < end; token++) {
        found.add(token, token);
      }

      return found;
    }

    SlotScan.scan(files, allocator, tensor.slots(), tensor.slots().rows(), (token, slot) -> {
      if (image.holds(slot)) {
        if (!image.take(slot)) {
          throw FileRangeTask.duplicate(
              tensor.slots().name(), slot, "token " + token, "token " + found.holder(slot),
              "file " + tensor.slots().path());
        }

        found.add(token, slot);
      }
    });
    return found;
  }

  private void add(long token, long slot) {
    tokens[count] = token;
    slots[count] = slot;
    count++;
  }

  private long holder(long slot) {
    int i = 0;
    while (slots[i] != slot) {
      i++;
    }

    return tokens[i];
  }

  int count() {
    return count;
  }

  long token(int i) {
    return tokens[i];
  }

  long slot(int i) {
    return slots[i];
  }
}
