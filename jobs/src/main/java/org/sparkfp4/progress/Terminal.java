package org.sparkfp4.progress;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Whether somebody looks. Java tells it of standard input and output together only. */
public final class Terminal {
  static final String CLEAR_TO_END = "\033[K";

  private Terminal() {}

  /** What ends a line on standard error that may be written over a line of progress; nothing where that is no terminal. */
  public static String toEndOfLine() {
    return isStandardError() ? CLEAR_TO_END : "";
  }

  /** Whether standard error is a terminal that moves its cursor when told so. False where that cannot be found out. */
  static boolean isStandardError() {
    try {
      String device = Files.readSymbolicLink(Path.of("/proc/self/fd/2")).toString();
      return device.matches("/dev/(pts/\\d+|tty.*|console)") && !"dumb".equals(System.getenv("TERM"));
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }
}
