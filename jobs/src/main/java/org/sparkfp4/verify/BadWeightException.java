package org.sparkfp4.verify;

/** A source weight is no number. */
final class BadWeightException extends Exception {
  private static final long serialVersionUID = 1L;

  BadWeightException(String message) {
    super(message);
  }
}
