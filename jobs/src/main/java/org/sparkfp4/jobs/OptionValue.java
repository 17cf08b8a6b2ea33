package org.sparkfp4.jobs;

import java.util.function.Supplier;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;

/** What options say in words that only our own classes know. */
final class OptionValue {
  private OptionValue() {}

  /**
   * A value of what an option says.
   *
   * @param command whose option it is
   * @param value throws IllegalArgumentException where the words are none that the option takes
   * @throws ParameterException then: a mistake in the command line, whichever command it is of
   */
  static <T> T of(CommandSpec command, Supplier<T> value) {
    try {
      return value.get();
    } catch (IllegalArgumentException e) {
      throw new ParameterException(command.commandLine(), e.getMessage(), e);
    }
  }
}
