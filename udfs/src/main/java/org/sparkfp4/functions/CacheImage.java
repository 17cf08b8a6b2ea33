package org.sparkfp4.functions;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.apache.arrow.memory.ArrowBuf;
import org.sparkfp4.kernels.KeyPages;

/** A cache of whole pages that a function is given and gives back with entries in it. */
final class CacheImage {
  private final ArrowBuf pages;
  private final long slots;
  private final int slotCount;
  private final KeyPages place;

  private CacheImage(ArrowBuf pages, long slots, int slotCount, KeyPages place) {
    this.pages = pages;
    this.slots = slots;
    this.slotCount = slotCount;
    this.place = place;
  }

  /**
   * A cache in native memory.
   *
   * @param cache its bytes; empty: pages of zeros, as many as the slots need
   * @param mapping 64-bit slots, one a token
   * @param pageTokens tokens of a page
   * @param pageBytes bytes of a page, which follow each other at once
   * @param name for messages
   */
  static CacheImage of(byte[] cache, byte[] mapping, int pageTokens, long pageBytes, String name,
      NativeScratch scratch) {
    int slotCount = Payload.rows(mapping, Long.BYTES, "slot_mapping");
    long count = cache.length > 0
        ? Payload.rows(cache, pageBytes, name)
        : largest(mapping) < 0 ? 0 : largest(mapping) / pageTokens + 1;
    if (count > Payload.LARGEST / pageBytes) {
      throw new IllegalArgumentException("Invalid slot_mapping: its slot " + largest(mapping) + " needs a cache of "
          + count + " pages of " + pageBytes + " bytes, must be below 2 GiB");
    }

    long bytes = count * pageBytes;

    ArrowBuf pages = scratch.take(Math.max(bytes, 1));
    if (cache.length > 0) {
      pages.setBytes(0, cache);
    } else {
      pages.setZero(0, bytes);
    }

    return new CacheImage(pages, scratch.copy(mapping), slotCount,
        new KeyPages(pages.memoryAddress(), count, pageTokens, pageBytes));
  }

  private static long largest(byte[] mapping) {
    ByteBuffer slots = ByteBuffer.wrap(mapping).order(ByteOrder.LITTLE_ENDIAN);
    long largest = -1;
    while (slots.hasRemaining()) {
      largest = Math.max(largest, slots.getLong());
    }

    return largest;
  }

  KeyPages pages() {
    return place;
  }

  /** Address of the slots. */
  long slots() {
    return slots;
  }

  int slotCount() {
    return slotCount;
  }

  byte[] bytes() {
    byte[] bytes = new byte[Math.toIntExact(place.count() * place.stride())];
    pages.getBytes(0, bytes);
    return bytes;
  }
}
