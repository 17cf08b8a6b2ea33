package org.sparkfp4.output;

import java.io.IOException;

/** Another run holds the lock of an output. The message is for the user. */
public final class OutputLockedException extends IOException {
  OutputLockedException(String message) {
    super(message);
  }
}
