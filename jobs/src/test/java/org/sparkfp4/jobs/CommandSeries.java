package org.sparkfp4.jobs;

import java.util.ArrayList;
import java.util.List;

/** A program for SparkSubmit: several commands of Main in one session, with {@value #THEN} between them. */
public final class CommandSeries {
  static final String THEN = "--then";

  private CommandSeries() {}

  public static void main(String[] arguments) {
    List<String> command = new ArrayList<>();
    for (String argument : arguments) {
      if (argument.equals(THEN)) {
        run(command);
        command.clear();
      } else {
        command.add(argument);
      }
    }

    run(command);
  }

  private static void run(List<String> command) {
    int status = Main.run(command.toArray(new String[0]));
    if (status != 0) {
      System.exit(status);
    }
  }
}
