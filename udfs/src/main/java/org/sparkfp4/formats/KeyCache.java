package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;

/** Writes indexer keys into pages. */
public final class KeyCache {
  private KeyCache() {}

  /**
   * Inserts keys; bytes of slots that no token has are left as they are.
   *
   * @param keys little-endian [tokens, D], from position to limit
   * @param slots of the tokens, see {@link SlotMapping}
   * @param pages the cache, from position to limit
   * @param pageCount pages of the cache
   * @param stride bytes from a page to the next, a page's at least
   * @throws NonFiniteRowException naming the first token that is written and has a NaN or infinite value, in its key or
   *     once it is normalised; what was written is not to be used
   * @throws IllegalArgumentException if a slot is outside the cache or named twice, or a buffer is too small
   */
  public static void insert(KeyForm form, ElementType type, ByteBuffer keys, long tokens, LongBuffer slots,
      ByteBuffer pages, long pageCount, KeyPage page, long stride) {
    int used = SlotMapping.check(slots, tokens, pageCount * page.tokens());
    int keyBytes = form.dim() * type.bytes();
    ByteBuffer source = keys.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer target = pages.slice();
    Mxfp4Codec.requireBytes("keys", source, tokens * keyBytes);
    Mxfp4Codec.requireBytes("pages", target, pageCount == 0 ? 0 : (pageCount - 1) * stride + page.bytes());
    float[] key = new float[form.dim()];
    for (int token = 0; token < used; token++) {
      long slot = slots.get(slots.position() + token);
      if (slot >= 0) {
        type.load(source, token * keyBytes, key);
        NonFiniteRowException.check(key, token);
        form.prepare(key);
        int base = Math.toIntExact(slot / page.tokens() * stride);
        int place = (int) (slot % page.tokens());
        Mxfp4Codec.encodeRow(form.rule(), key, token, target, base + page.codesAt(place), target,
            base + page.scalesAt(place));
      }
    }
  }
}
