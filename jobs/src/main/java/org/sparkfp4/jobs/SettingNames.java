package org.sparkfp4.jobs;

import java.util.Set;
import java.util.TreeSet;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSession;
import picocli.CommandLine.IExecutionStrategy;
import picocli.CommandLine.ParseResult;
import scala.Option;

/**
 * Holds the names of settings {@code spark.fp4.*} to those that there are before a command runs, one that needs no
 * session too: a name that is mistyped is a mistake in the command line, whichever command it stands before.
 */
final class SettingNames implements IExecutionStrategy {
  private final IExecutionStrategy next;

  /** {@code next} runs the command. */
  SettingNames(IExecutionStrategy next) {
    this.next = next;
  }

  @Override
  public int execute(ParseResult parsed) {
    ChosenCommand command = ChosenCommand.of(parsed);
    if (!command.isHelp()) {
      OptionValue.of(command.spec(), () -> {
        RunSettings.requireKnown(given());
        return null;
      });
    }

    return next.execute(parsed);
  }

  /** What SparkSubmit was given, and what a session that runs already was given since. */
  private static Set<String> given() {
    Set<String> keys = new TreeSet<>();
    for (var setting : new SparkConf().getAll()) {
      keys.add(setting._1());
    }

    Option<SparkSession> running = SparkSession.getDefaultSession();
    if (running.isDefined()) {
      running.get().conf().getAll().keysIterator().foreach(keys::add);
    }

    return keys;
  }
}
