package org.sparkfp4.files;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
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

  /** The digest of these bytes, lower-case hexadecimal. */
  public static String hex(byte[] bytes) {
    Sha256 digest = new Sha256();
    digest.update(ByteBuffer.wrap(bytes));
    return digest.hex();
  }

  /** The digest of a text's UTF-8, lower-case hexadecimal. */
  public static String hex(String text) {
    return hex(text.getBytes(StandardCharsets.UTF_8));
  }

  /** Adds what is left of {@code bytes}. */
  public void update(ByteBuffer bytes) {
    digest.update(bytes.duplicate());
  }

  /** Adds a text's UTF-8. */
  public void update(String text) {
    digest.update(text.getBytes(StandardCharsets.UTF_8));
  }

  /** The digest, 32 bytes; nothing can be added after it. */
  public byte[] bytes() {
    return digest.digest();
  }

  /** The digest, lower-case hexadecimal; nothing can be added after it. */
  public String hex() {
    return HexFormat.of().formatHex(bytes());
  }
}
