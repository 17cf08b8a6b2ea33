package org.sparkfp4.keys;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.sparkfp4.files.Sha256;

/** The names under which runtimes keep the caches of token prefixes. */
final class TokenHashes {
  private TokenHashes() {}

  /** SHA-256 of each full page, over the one before and the page's ids as 32-bit integers, little-endian. */
  static List<String> pages(long[] tokens, int pageTokens) {
    List<String> hashes = new ArrayList<>();
    byte[] before = {};
    for (int first = 0; first + pageTokens <= tokens.length; first += pageTokens) {
      ByteBuffer ids = ByteBuffer.allocate(before.length + pageTokens * Integer.BYTES).order(ByteOrder.LITTLE_ENDIAN);
      ids.put(before);
      for (int i = 0; i < pageTokens; i++) {
        ids.putInt((int) tokens[first + i]);
      }

      Sha256 hash = new Sha256();
      hash.update(ids.rewind());
      before = hash.bytes();
      hashes.add(HexFormat.of().formatHex(before));
    }

    return hashes;
  }

  /** MD5 of the first tokens' ids as 64-bit integers, little-endian. */
  static String prefix(long[] tokens, int count) {
    ByteBuffer ids = ByteBuffer.allocate(count * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    ids.asLongBuffer().put(Arrays.copyOf(tokens, count));
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("MD5").digest(ids.array()));
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Cannot find MD5, which every JDK has", e);
    }
  }
}
