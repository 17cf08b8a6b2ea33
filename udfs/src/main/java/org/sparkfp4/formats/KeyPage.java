package org.sparkfp4.formats;

import java.io.Serializable;
import java.nio.ByteBuffer;

/**
 * The image of a page of an MXFP4 indexer cache: B tokens of D / 2 bytes of codes, then B tokens of D / 32 scale bytes.
 * There is no record of a token: its codes and scales lie apart. Slot s is token {@code s mod B} of page {@code s div B}.
 *
 * @param tokens B
 * @param dim D, a multiple of 32
 */
public record KeyPage(int tokens, int dim) implements Serializable {
  public KeyPage {
    if (tokens <= 0) {
      throw new IllegalArgumentException("Invalid page: " + tokens + " tokens, must be positive");
    }

    Mxfp4Codec.requireColumns(dim);
  }

  /** Bytes that a token takes, which is the last dimension of the cache's shape. */
  public int tokenBytes() {
    return dim / 2 + dim / Mxfp4Codec.BLOCK;
  }

  /** Bytes of a page; pages may stand further apart. */
  public int bytes() {
    return tokens * tokenBytes();
  }

  /** Where a token's codes begin in its page. */
  public int codesAt(int token) {
    return token * (dim / 2);
  }

  /** Where a token's scales begin in its page. */
  public int scalesAt(int token) {
    return tokens * (dim / 2) + token * (dim / Mxfp4Codec.BLOCK);
  }

  /** The values of the token in a slot of pages that stand {@code stride} bytes apart. */
  public void decode(ByteBuffer pages, long stride, long slot, float[] out) {
    int page = Math.toIntExact(pages.position() + slot / tokens * stride);
    int token = (int) (slot % tokens);
    for (int block = 0; block < dim / Mxfp4Codec.BLOCK; block++) {
      Mxfp4Codec.decodeBlock(pages, page + codesAt(token) + block * Mxfp4Codec.PACKED_BLOCK,
          pages.get(page + scalesAt(token) + block), out, block * Mxfp4Codec.BLOCK);
    }
  }
}
