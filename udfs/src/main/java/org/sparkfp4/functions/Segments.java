package org.sparkfp4.functions;

import java.util.Arrays;
import org.sparkfp4.formats.Nvfp4;
import org.sparkfp4.formats.SourceScheme;

/** The weights of one row of a query as a kernel takes them: its members' addresses and lengths, in order. */
final class Segments {
  private static final long LARGEST_COLS = 1L << 32;

  private final String name;
  private final SourceScheme scheme;
  private long[] addresses = {};
  private long[] bytes = {};
  private long[] scaleAddresses = {};
  private long[] scaleBytes = {};

  /**
   * @param scheme a dtype as a safetensors header names it, or {@link org.sparkfp4.formats.WeightScheme#text}
   * @throws IllegalArgumentException if it is null or none that can be encoded
   */
  Segments(String scheme) {
    this.name = scheme;
    this.scheme = SourceScheme.parse(scheme);
  }

  /** Of members on the heap, null where absent, copied to where a kernel can read them. */
  static Segments copied(byte[][] members, byte[][] scales, String scheme, NativeScratch scratch) {
    Segments segments = new Segments(scheme);
    for (int member = 0; member < members.length; member++) {
      if (members[member] != null) {
        segments.add(member, scratch.copy(members[member]), members[member].length);
      }

      if (scales[member] != null) {
        segments.addScales(member, scratch.copy(scales[member]), scales[member].length);
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
  void add(int member, long address, long length) {
    if (member != addresses.length) {
      throw new IllegalArgumentException(
          "Invalid data" + member + ": not null though data" + addresses.length + " is null");
    }

    if (!scheme.isStored() && length % scheme.plain().bytes() != 0) {
      throw new IllegalArgumentException(
          "Invalid " + argument(member) + ": " + length + " bytes are no whole number of " + name + " elements of "
              + scheme.plain().bytes() + " bytes");
    }

    addresses = append(addresses, address);
    bytes = append(bytes, length);
  }

  /**
   * Adds the scales of the member that was added last.
   *
   * @throws IllegalArgumentException if it is absent, or its scheme has no scales
   */
  void addScales(int member, long address, long length) {
    if (!scheme.isStored()) {
      throw new IllegalArgumentException("Invalid scale" + member + ": not null though " + name + " has no scales");
    }

    if (member != addresses.length - 1 || member != scaleAddresses.length) {
      throw new IllegalArgumentException("Invalid scale" + member + ": not null though data" + member + " or a scale "
          + "before is null");
    }

    scaleAddresses = append(scaleAddresses, address);
    scaleBytes = append(scaleBytes, length);
  }

  SourceScheme scheme() {
    return scheme;
  }

  long[] addresses() {
    return addresses;
  }

  /** Addresses of the members' scales; none where the scheme has none. */
  long[] scales() {
    return scaleAddresses;
  }

  /** Scales of each member. */
  long[] scaleCounts() {
    return Arrays.stream(scaleBytes).map(length -> length / scheme.stored().scales().bytes()).toArray();
  }

  /** Elements of each member, whose scheme is plain. */
  long[] elements() {
    return Arrays.stream(bytes).map(length -> length / scheme.plain().bytes()).toArray();
  }

  /** Refuses what cannot be the elements of a row. */
  static void requireColumns(Long cols) {
    if (cols == null || cols <= 0 || cols % Nvfp4.BLOCK != 0) {
      throw new IllegalArgumentException(
          "Invalid cols: " + cols + ", must be a positive multiple of " + Nvfp4.BLOCK);
    }

    // two codes a byte, of 2 GiB; products of more might overflow
    if (cols > LARGEST_COLS) {
      throw new IllegalArgumentException(
          "Invalid cols: " + cols + ", must be " + LARGEST_COLS + " at most, more than a payload has");
    }
  }

  /**
   * Rows of every member.
   *
   * @throws IllegalArgumentException if cols is null or no positive multiple of 16, a member is no whole number of such
   *     rows, or its scales are not those of the rows
   */
  long[] rows(Long cols) {
    requireColumns(cols);
    long[] rows = new long[bytes.length];
    long rowBytes = scheme.dataBytes(1, cols);
    for (int member = 0; member < rows.length; member++) {
      if (bytes[member] % rowBytes != 0) {
        throw new IllegalArgumentException(
            "Invalid " + argument(member) + ": " + bytes[member] + " bytes are no whole number of rows of " + cols + " "
                + name + " elements");
      }

      rows[member] = bytes[member] / rowBytes;
      requireScales(member, rows[member], cols);
    }

    return rows;
  }

  private void requireScales(int member, long rows, long cols) {
    if (!scheme.isStored()) {
      return;
    }

    long needed = scheme.scaleBytes(rows, cols);
    if (member >= scaleBytes.length || scaleBytes[member] != needed) {
      throw new IllegalArgumentException("Invalid scale" + member + ": "
          + (member >= scaleBytes.length ? "null" : scaleBytes[member] + " bytes") + ", [" + rows + ", " + cols
          + "] of " + name + " needs " + needed + " bytes");
    }
  }

  /** The argument that a member is: a query's function has one, its payload, that of a run up to three. */
  private static String argument(int member) {
    return member == 0 ? "payload (data0)" : "data" + member;
  }

  private static long[] append(long[] values, long value) {
    long[] longer = Arrays.copyOf(values, values.length + 1);
    longer[values.length] = value;
    return longer;
  }
}
