package org.sparkfp4.formats;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The indexer's query as readers of an MXFP4 key cache take it: codes [T, P, 64], the four scale bytes of a head as one
 * little-endian int32 [T, P], and head weights times one factor, binary32 [T, P]. Block scales are not folded into the
 * weights. Heads from H to P are zero throughout.
 */
public final class IndexQuery {
  /** Values of a head: four blocks, whose scales make one int32. */
  public static final int DIM = 4 * Mxfp4Codec.BLOCK;

  private IndexQuery() {}

  /**
   * Encodes queries.
   *
   * @param query little-endian [tokens, heads, 128], from position to limit
   * @param weights little-endian [tokens, heads], likewise
   * @param weightScale what each weight is multiplied by
   * @param paddedHeads P, heads at least
   * @param packed takes [tokens, P, 64]
   * @param scales takes [tokens, P] of 4 bytes
   * @param weightsOut takes [tokens, P] of 4 bytes
   * @throws NonFiniteRowException naming the row token * heads + head
   * @throws IllegalArgumentException if P is below heads or a buffer too small
   */
  public static void encode(ScaleRule rule, ElementType type, ByteBuffer query, ElementType weightType,
      ByteBuffer weights, float weightScale, long tokens, int heads, int paddedHeads, ByteBuffer packed,
      ByteBuffer scales, ByteBuffer weightsOut) {
    requireHeads(heads, paddedHeads);
    ByteBuffer source = query.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer sourceWeights = weights.slice().order(ByteOrder.LITTLE_ENDIAN);
    ByteBuffer codes = packed.slice();
    ByteBuffer bytes = scales.slice();
    ByteBuffer target = weightsOut.slice().order(ByteOrder.LITTLE_ENDIAN);
    Mxfp4Codec.requireBytes("query", source, tokens * heads * DIM * type.bytes());
    Mxfp4Codec.requireBytes("weights", sourceWeights, tokens * heads * weightType.bytes());
    float[] row = new float[DIM];
    for (int token = 0; token < tokens; token++) {
      for (int head = 0; head < paddedHeads; head++) {
        int to = token * paddedHeads + head;
        if (head < heads) {
          int from = token * heads + head;
          type.load(source, from * DIM * type.bytes(), row);
          NonFiniteRowException.check(row, from);
          Mxfp4Codec.encodeRow(rule, row, from, codes, to * (DIM / 2), bytes, to * Integer.BYTES);
          target.putFloat(to * Float.BYTES, weightType.load(sourceWeights, from * weightType.bytes()) * weightScale);
        } else {
          codes.put(to * (DIM / 2), new byte[DIM / 2]);
          bytes.put(to * Integer.BYTES, new byte[Integer.BYTES]);
          target.putFloat(to * Float.BYTES, 0);
        }
      }
    }
  }

  /** Refuses head counts that do not go together. */
  public static void requireHeads(int heads, int paddedHeads) {
    if (heads < 0 || paddedHeads < heads) {
      throw new IllegalArgumentException(
          "Invalid padded heads: " + paddedHeads + ", must be " + heads + " at least, the heads that there are");
    }
  }
}
