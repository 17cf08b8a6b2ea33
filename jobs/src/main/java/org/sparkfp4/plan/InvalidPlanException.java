package org.sparkfp4.plan;

import java.io.IOException;

/** A file that is no plan: damaged, cut short, or of another version. */
public final class InvalidPlanException extends IOException {
  private static final long serialVersionUID = 1L;

  InvalidPlanException(Object file, String problem, Throwable cause) {
    super("Invalid plan " + file + ": " + problem, cause);
  }
}
