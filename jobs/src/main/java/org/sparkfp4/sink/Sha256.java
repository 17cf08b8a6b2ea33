package org.sparkfp4.sink;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** A running SHA-256. */
public final class Sha256 {
  private final MessageDigest digest;

  /** Begins with nothing. */
  public Sha256() {
    try {
      digest = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("Cannot find SHA-256, which every Java platform must have", e);
    }
  }

  /** Adds what is left of {@code bytes}. */
  public void update(ByteBuffer bytes) {
    digest.update(bytes.duplicate());
  }

  /** The digest, lower-case hexadecimal; nothing can be added after it. */
  public String hex() {
    return HexFormat.of().formatHex(digest.digest());
  }
}
