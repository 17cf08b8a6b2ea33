package org.sparkfp4.jobs;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;

/** The options that every command has for saying more or less, and how; a picocli mixin. */
final class Verbosity {
  private static final String VERBOSE = "--verbose";
  private static final String QUIET = "--quiet";
  static final String FORMAT = "--log-format";

  @Option(names = {"-v", VERBOSE}, description = "Print stack traces of errors.")
  boolean verbose;

  @Option(
      names = {"-q", QUIET},
      description = "Print results, warnings and errors only: no progress, no other lines of the log.")
  boolean quiet;

  @Option(
      names = FORMAT,
      defaultValue = "text",
      paramLabel = "FORMAT",
      description = "text (default), or json: every line on standard error is a JSON object, progress and errors too.")
  LogFormat format;

  /** How lines of the log are written. */
  enum LogFormat {
    TEXT,
    JSON
  }

  /** How progress is shown where {@code setting} asks for it in its own words. */
  String progress(String setting) {
    if (quiet) {
      return "off";
    }

    return format == LogFormat.JSON && setting.matches("auto|line") ? "log" : setting;
  }

  static boolean isVerbose(CommandSpec spec) {
    return Boolean.TRUE.equals(value(spec, VERBOSE));
  }

  static boolean isQuiet(CommandSpec spec) {
    return Boolean.TRUE.equals(value(spec, QUIET));
  }

  static boolean isJson(CommandSpec spec) {
    return value(spec, FORMAT) == LogFormat.JSON;
  }

  /** Null where the command lacks the option. */
  private static Object value(CommandSpec spec, String name) {
    OptionSpec option = spec.optionsMap().get(name);
    return option == null ? null : option.getValue();
  }
}
