package org.sparkfp4.jobs;

import java.io.PrintWriter;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.files.Printable;
import picocli.CommandLine;
import picocli.CommandLine.IParameterExceptionHandler;
import picocli.CommandLine.MissingParameterException;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.UnmatchedArgumentException;

/**
 * Reports a command line that is wrong: what is wrong with it, what comes nearest, and where the options are listed.
 * The list itself is longer than a screen, and would push the error off it.
 */
final class UsageHandler implements IParameterExceptionHandler {
  private static final Logger LOG = LoggerFactory.getLogger(Main.class);

  /** More than these names are no suggestion. */
  private static final int SUGGESTIONS = 3;

  @Override
  public int handleParseException(ParameterException wrong, String[] arguments) {
    CommandLine line = wrong.getCommandLine();
    String message = Printable.of(message(wrong, arguments));
    String help = "'" + line.getCommandSpec().qualifiedName() + " --help'";
    if (asksForJson(arguments)) {
      // what was wrong was found before any command could set the log up
      LogSettings.writeJson();
      LOG.error("{}; see {}", message, help);
    } else {
      PrintWriter err = line.getErr();
      err.println(line.getColorScheme().errorText(message));
      err.println("See " + help + ".");
      err.flush();
    }

    return line.getCommandSpec().exitCodeOnInvalidInput();
  }

  private static String message(ParameterException wrong, String[] arguments) {
    CommandLine line = wrong.getCommandLine();
    if (wrong instanceof MissingParameterException) {
      // an option that is missing may be there under a name that is none
      return wrong.getMessage() + Arrays.stream(arguments)
          .map(argument -> argument.split("=", 2)[0])
          .filter(option -> option.startsWith("--") && !line.getCommandSpec().optionsMap().containsKey(option))
          .findFirst()
          .map(option -> ", and there is no " + option + suggested(new UnmatchedArgumentException(line, List.of(option))))
          .orElse("");
    }

    if (!(wrong instanceof UnmatchedArgumentException unmatched)) {
      return wrong.getMessage();
    }

    boolean isCommand = !unmatched.isUnknownOption() && !line.getSubcommands().isEmpty();
    return (isCommand ? "Unknown command: '" + unmatched.getUnmatched().get(0) + "'" : wrong.getMessage())
        + suggested(unmatched);
  }

  private static String suggested(UnmatchedArgumentException unmatched) {
    List<String> near = unmatched.getSuggestions();
    return near.isEmpty() ? "" : near.stream().limit(SUGGESTIONS)
        .collect(Collectors.joining(", ", " (did you mean ", "?)"));
  }

  private static boolean asksForJson(String[] arguments) {
    String all = String.join("\n", Arrays.asList(arguments)) + "\n";
    return all.matches("(?is)(.*\n)?" + Verbosity.FORMAT + "[=\n]json\n.*");
  }
}
