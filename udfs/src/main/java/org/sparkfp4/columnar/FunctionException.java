package org.sparkfp4.columnar;

/** A function failed on a batch; the cause is what it threw, the message says on which rows. */
final class FunctionException extends RuntimeException {
  FunctionException(String message, Throwable cause) {
    super(message, cause);
  }
}
