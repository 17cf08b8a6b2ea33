package org.sparkfp4.jobs;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParseResult;

/**
 * What a command line asks for.
 *
 * @param spec the command: the last of those that are named, each one of the other's
 * @param isHelp whether help or a version is wanted, of it or of one that it is of
 */
record ChosenCommand(CommandSpec spec, boolean isHelp) {
  static ChosenCommand of(ParseResult parsed) {
    boolean isHelp = parsed.isUsageHelpRequested() || parsed.isVersionHelpRequested();
    if (!parsed.hasSubcommand()) {
      return new ChosenCommand(parsed.commandSpec(), isHelp);
    }

    ChosenCommand below = of(parsed.subcommand());
    return new ChosenCommand(below.spec, isHelp || below.isHelp);
  }
}
