package org.sparkfp4.jobs;

import java.util.stream.Collectors;
import picocli.CommandLine.Model.CommandSpec;

/** Says, when the process is ended from outside while a run is under way, which command finishes the rest. */
final class ResumeHint {
  private final Runnable hook;

  /** The hint of a command that goes on where it was when it is given once more. */
  ResumeHint(CommandSpec spec) {
    String command = command(spec);
    hook = () -> Interruption.tell(
        spec, "Stopped before the end. What is finished is kept; this does the rest:", "  " + command);
    Interruption.before(hook);
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
    Interruption.remove(hook);
  }
}
