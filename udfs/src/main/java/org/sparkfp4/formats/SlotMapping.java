package org.sparkfp4.formats;

import java.nio.LongBuffer;
import java.util.Arrays;

/**
 * Where tokens go in a paged cache: token t to slot {@code slots[t]}. A token whose slot is negative, and one past the
 * mapping's end, goes nowhere.
 */
public final class SlotMapping {
  private SlotMapping() {}

  /**
   * Refuses a mapping that writes outside the cache or twice to one place.
   *
   * @param slots from position to limit
   * @param tokens that there are; a longer mapping's rest is not used
   * @param capacity slots of the cache
   * @return how many tokens of the mapping there are
   * @throws IllegalArgumentException naming the token
   */
  public static int check(LongBuffer slots, long tokens, long capacity) {
    int used = (int) Math.min(slots.remaining(), tokens);
    long[] sorted = new long[used];
    boolean rising = true;
    long last = -1;
    for (int token = 0; token < used; token++) {
      long slot = slots.get(slots.position() + token);
      if (slot >= capacity) {
        throw new IllegalArgumentException(
            "Invalid slot of token " + token + ": " + slot + ", must be below " + capacity + ", the cache's slots");
      }

      sorted[token] = slot;
      rising &= slot < 0 || slot > last;
      last = Math.max(slot, last);
    }

    if (rising) {
      return used;
    }

    Arrays.sort(sorted);
    for (int i = 1; i < used; i++) {
      if (sorted[i] >= 0 && sorted[i] == sorted[i - 1]) {
        throw duplicate(slots, sorted[i]);
      }
    }

    return used;
  }

  private static IllegalArgumentException duplicate(LongBuffer slots, long slot) {
    int first = -1;
    for (int token = 0;; token++) {
      if (slots.get(slots.position() + token) == slot) {
        if (first >= 0) {
          return new IllegalArgumentException("Invalid slot of token " + token + ": " + slot + ", token " + first
              + " has it already; a slot holds one token");
        }

        first = token;
      }
    }
  }
}
