package org.sparkfp4.jobs;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.util.ShutdownHookManager;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.Appender;
import org.apache.logging.log4j.core.Filter;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.ConsoleAppender;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.filter.ThresholdFilter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.progress.Terminal;
import picocli.CommandLine.Model.CommandSpec;

/**
 * What is said when the process is ended from outside while a command runs, by Ctrl-C or a kill: that it was, before Spark
 * stops under the command, and nothing after. What Spark says then, each task that it refuses with a stack trace, tells
 * nothing.
 */
final class Interruption implements AutoCloseable {
  /** Of a hook that speaks; higher ones run first, and Spark's, which stops it, is 40. */
  private static final int SPEAKS = 1001;

  private static final int SILENCES = 1000;

  // of the process: it ends once
  private static final AtomicBoolean TOLD = new AtomicBoolean();

  private static final Logger LOG = LoggerFactory.getLogger(Main.class);

  private final Runnable speaks;
  private final Runnable silences = Interruption::silenceConsole;

  /** Watches over a command, until it is closed. */
  Interruption(CommandSpec spec) {
    speaks = () -> tell(spec, "Interrupted.");
    ShutdownHookManager.get().addShutdownHook(speaks, SPEAKS);
    ShutdownHookManager.get().addShutdownHook(silences, SILENCES);
  }

  /** Has {@code hook} speak before an interruption would: what it tells stands for it. */
  static void before(Runnable hook) {
    ShutdownHookManager.get().addShutdownHook(hook, SPEAKS + 1);
  }

  /** Takes a hook back; one of a process that is ending stays, and runs as it should. */
  static void remove(Runnable hook) {
    try {
      ShutdownHookManager.get().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // the process is ending
    }
  }

  /** Tells of the end of the process, unless that was told already. */
  static void tell(CommandSpec spec, String... lines) {
    if (TOLD.getAndSet(true)) {
      return;
    }

    if (Verbosity.isJson(spec)) {
      LOG.error(String.join(" ", lines).replaceAll(" +", " "));
      return;
    }

    for (String line : lines) {
      spec.commandLine().getErr().println(line + Terminal.toEndOfLine());
    }

    spec.commandLine().getErr().flush();
  }

  /** From here on the console says nothing of the log; files that it goes to say on. */
  static void silenceConsole() {
    silenceConsole(LoggerContext.getContext(false));
  }

  static void silenceConsole(LoggerContext context) {
    for (LoggerConfig logger : context.getConfiguration().getLoggers().values()) {
      for (Appender appender : logger.getAppenders().values()) {
        if (appender instanceof ConsoleAppender console) {
          console.addFilter(ThresholdFilter.createFilter(Level.OFF, Filter.Result.DENY, Filter.Result.DENY));
        }
      }
    }
  }

  /** The command has ended, well or not. */
  @Override
  public void close() {
    remove(speaks);
    remove(silences);
  }
}
