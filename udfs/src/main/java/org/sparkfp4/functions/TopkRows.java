package org.sparkfp4.functions;

import java.util.Arrays;

/** The indexer's buffer of chosen tokens: int32 [rows, topk]. */
final class TopkRows {
  private TopkRows() {}

  /**
   * The buffer with its first rows filled with -1, "no token"; null where there is none.
   *
   * @param tokens rows to fill
   * @param topk columns
   */
  static byte[] filled(byte[] buffer, long tokens, Integer topk) {
    if (buffer == null) {
      return null;
    }

    long rowBytes = (long) Payload.positive(topk, "topk") * Integer.BYTES;
    int rows = Payload.rows(buffer, rowBytes, "topk_indices_buffer");
    if (rows < tokens) {
      throw new IllegalArgumentException(
          "Invalid topk_indices_buffer: " + rows + " rows, must be " + tokens + " at least, one a token");
    }

    byte[] filled = buffer.clone();
    Arrays.fill(filled, 0, Math.toIntExact(tokens * rowBytes), (byte) -1);
    return filled;
  }
}
