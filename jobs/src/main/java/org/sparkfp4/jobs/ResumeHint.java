package org.sparkfp4.jobs;

import java.io.PrintWriter;

/** Says, when the process is ended from outside while a run is under way, which command finishes the rest. */
final class ResumeHint {
  private final Thread hook;

  ResumeHint(PrintWriter err, String command) {
    hook =
        new Thread(
            () -> {
              err.println("Stopped before the end. What is finished is kept; this does the rest:");
              err.println("  " + command);
              err.flush();
            },
            "sparkfp4-resume-hint");
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** The run has ended, well or not: nothing is to be said any more. */
  void close() {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // the process is ending: the hook runs, as it should
    }
  }
}
