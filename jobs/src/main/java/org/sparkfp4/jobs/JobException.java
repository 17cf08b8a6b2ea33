package org.sparkfp4.jobs;

/** A command cannot go on, for a reason that its user can do something about; the message says what and how. */
public final class JobException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public JobException(String message) {
    super(message);
  }

  public JobException(String message, Throwable cause) {
    super(message, cause);
  }
}
