package org.sparkfp4.functions;

import java.util.Arrays;
import org.sparkfp4.formats.ElementType;
import org.sparkfp4.formats.Nvfp4;

/** The weights of one row of a query as a kernel takes them: its members' addresses and lengths, in order. */
final class Segments {
  private final ElementType type;
  private long[] addresses = {};
  private long[] elements = {};

  /**
   * @param dtype as a safetensors header names it
   * @throws IllegalArgumentException if it is null or no type that can be encoded
   */
  Segments(String dtype) {
    this.type = ElementType.of(dtype);
  }

  /** Of members on the heap, null where absent, copied to where a kernel can read them. */
  static Segments copied(byte[][] members, String dtype, NativeScratch scratch) {
    Segments segments = new Segments(dtype);
    for (int member = 0; member < members.length; member++) {
      if (members[member] != null) {
        segments.add(member, scratch.copy(members[member]), members[member].length);
      }
    }

    return segments;
  }

  /**
   * Adds the next member.
   *
   * @param member position of its argument, which must follow the last one's: a kernel names members by their order
   * @throws IllegalArgumentException if a member before is absent or the bytes are no whole number of elements
   */
  void add(int member, long address, long bytes) {
    if (member != addresses.length) {
      throw new IllegalArgumentException(
          "Invalid data" + member + ": not null though data" + addresses.length + " is null");
    }

    if (bytes % type.bytes() != 0) {
      throw new IllegalArgumentException(
          "Invalid data" + member + ": " + bytes + " bytes are no whole number of " + type + " elements of "
              + type.bytes() + " bytes");
    }

    addresses = Arrays.copyOf(addresses, member + 1);
    elements = Arrays.copyOf(elements, member + 1);
    addresses[member] = address;
    elements[member] = bytes / type.bytes();
  }

  ElementType type() {
    return type;
  }

  long[] addresses() {
    return addresses;
  }

  long[] elements() {
    return elements;
  }

  /**
   * Rows of every member.
   *
   * @throws IllegalArgumentException if cols is no positive multiple of 16 or a member is no whole number of such rows
   */
  long[] rows(long cols) {
    if (cols <= 0 || cols % Nvfp4.BLOCK != 0) {
      throw new IllegalArgumentException(
          "Invalid cols: " + cols + ", must be a positive multiple of " + Nvfp4.BLOCK);
    }

    long[] rows = new long[elements.length];
    for (int member = 0; member < rows.length; member++) {
      if (elements[member] % cols != 0) {
        throw new IllegalArgumentException(
            "Invalid data" + member + ": " + elements[member] * type.bytes() + " bytes are no whole number of rows of "
                + cols + " " + type + " elements");
      }

      rows[member] = elements[member] / cols;
    }

    return rows;
  }
}
