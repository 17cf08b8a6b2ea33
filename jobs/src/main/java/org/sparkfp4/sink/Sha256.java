package org.sparkfp4.sink;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** A running SHA-256. */
final class Sha256 {
  private final MessageDigest digest;

  Sha256() {
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Cannot find SHA-256, which every Java platform must have", e);
    }
  }

  void update(ByteBuffer bytes) {
    digest.update(bytes.duplicate());
  }

  String hex() {
    return HexFormat.of().formatHex(digest.digest());
  }
}
