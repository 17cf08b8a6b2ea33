package org.sparkfp4.jobs;

import java.io.PrintWriter;
import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;

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

  /** The command that finishes what a command began: itself, but for what would throw the beginning away. */
  static String command(CommandSpec spec) {
    return spec.commandLine().getParseResult().originalArgs().stream()
        .dropWhile(argument -> argument.equals(spec.name()))
        .filter(argument -> !argument.equals("--overwrite"))
        .map(argument -> argument.matches("[\\w@%+=:,./-]+") ? argument : "'" + argument.replace("'", "'\\''") + "'")
        .collect(Collectors.joining(" ", spec.qualifiedName() + " ", ""));
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
