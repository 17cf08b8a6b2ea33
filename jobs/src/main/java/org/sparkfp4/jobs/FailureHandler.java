package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.nio.file.FileSystemException;
import org.apache.spark.SparkException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.files.Printable;
import picocli.CommandLine;
import picocli.CommandLine.IExecutionExceptionHandler;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.ParseResult;

/**
 * Reports what a command threw: one line for what its user can mend, storage that failed among it, all of it for what
 * they cannot or with {@code --verbose}. Of a process that is ended from outside {@link Interruption} tells.
 */
final class FailureHandler implements IExecutionExceptionHandler {
  private static final Logger LOG = LoggerFactory.getLogger(Main.class);

  @Override
  public int handleExecutionException(Exception failure, CommandLine line, ParseResult parsed) throws Exception {
    if (failure instanceof ParameterException usage) {
      // as if the parser had found it: message, where help is, status 2
      return line.getParameterExceptionHandler().handleParseException(usage, parsed.originalArgs().toArray(new String[0]));
    }

    // Ctrl-C or a kill: Spark has stopped under the command, and what it threw then tells nothing
    if (!isShuttingDown()) {
      Throwable told = told(failure);
      boolean isTraced = Verbosity.isVerbose(line.getCommandSpec()) || !isExpected(told);
      print(line, Printable.of(message(told)), isTraced ? failure : null);
    }

    return line.getCommandSpec().exitCodeOnExecutionException();
  }

  /** {@code trace} is the exception whose stack trace is wanted too, or null. */
  private static void print(CommandLine line, String message, Exception trace) {
    if (Verbosity.isJson(line.getCommandSpec())) {
      LOG.error(message, trace);
      return;
    }

    PrintWriter err = line.getErr();
    if (trace != null) {
      trace.printStackTrace(err);
    }

    err.println(line.getColorScheme().errorText(message));
    err.flush();
  }

  /** Whether the JVM is on its way out: it takes no more hooks then. */
  private static boolean isShuttingDown() {
    Thread probe = new Thread(() -> {});
    try {
      Runtime.getRuntime().addShutdownHook(probe);
      Runtime.getRuntime().removeShutdownHook(probe);
      return false;
    } catch (IllegalStateException e) {
      return true;
    }
  }

  /** The exception whose message says most: below Spark's wrappers, the task's own. */
  private static Throwable told(Throwable failure) {
    Throwable told = failure;
    while ((told instanceof SparkException || told instanceof UncheckedIOException) && told.getCause() != null) {
      told = told.getCause();
    }

    return told;
  }

  /** Whether the message alone is enough: house style begins it with what cannot be done or what is invalid. */
  private static boolean isExpected(Throwable told) {
    String message = told.getMessage();
    return told instanceof JobException
        || told instanceof IOException
        || (isInHouseStyle(message) && !(told instanceof NullPointerException));
  }

  private static boolean isInHouseStyle(String message) {
    return message != null && (message.startsWith("Cannot ") || message.startsWith("Invalid "));
  }

  private static String message(Throwable told) {
    if (told instanceof IOException storage && !isInHouseStyle(told.getMessage())) {
      return "Cannot go on, a file or a file system failed: " + reason(storage) + " (-v tells where)";
    }

    return told.getMessage() == null || told.getMessage().isBlank() ? told.toString() : told.getMessage();
  }

  /** Java's own file system puts the reason into the exception's class, beside a message that is a file's name. */
  private static String reason(IOException storage) {
    boolean isFileOnly = storage instanceof FileSystemException file && file.getReason() == null;
    return storage.getMessage() == null || isFileOnly ? storage.toString() : storage.getMessage();
  }
}
