package org.sparkfp4.keys;

/** The input's keys cannot be cached as they are; the message says which and why. */
public final class InvalidKeysException extends IllegalArgumentException {
  InvalidKeysException(String message) {
    super(message);
  }
}
