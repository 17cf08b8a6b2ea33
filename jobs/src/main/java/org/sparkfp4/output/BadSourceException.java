package org.sparkfp4.output;

/** The bytes of a source tensor cannot be quantized; trying again cannot help. The message is for the user. */
public final class BadSourceException extends RuntimeException {
  public BadSourceException(String message) {
    super(message);
  }
}
