package org.sparkfp4.keys;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;

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

      before = digest("SHA-256", ids.array());
      hashes.add(HexFormat.of().formatHex(before));
    }

    return hashes;
  }

  /** MD5 of the first tokens' ids as 64-bit integers, little-endian. */
  static String prefix(long[] tokens, int count) {
    ByteBuffer ids = ByteBuffer.allocate(count * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    ids.asLongBuffer().put(Arrays.copyOf(tokens, count));
    return HexFormat.of().formatHex(digest("MD5", ids.array()));
  }

  /** SHA-256 of a text, in hexadecimal digits. */
  static String text(String text) {
    return HexFormat.of().formatHex(digest("SHA-256", text.getBytes(StandardCharsets.UTF_8)));
  }

  private static byte[] digest(String algorithm, byte[] bytes) {
    try {
      return MessageDigest.getInstance(algorithm).digest(bytes);
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Cannot find " + algorithm + ", which every JDK has", e);
    }
  }
}
