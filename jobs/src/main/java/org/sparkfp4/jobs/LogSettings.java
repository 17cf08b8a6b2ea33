package org.sparkfp4.jobs;

import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.Appender;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.ConsoleAppender;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.config.Configurator;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.layout.template.json.JsonTemplateLayout;
import picocli.CommandLine.IExecutionStrategy;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParseResult;

/** Gives the process's log what a command's {@link Verbosity} asks for, before the command runs. */
final class LogSettings implements IExecutionStrategy {
  private static final String OWN = "org.sparkfp4";

  // Spark's own, of spark.log.structuredLogging: one form for what both say
  private static final String TEMPLATE = "classpath:org/apache/spark/SparkLayout.json";

  private final IExecutionStrategy next;

  /** {@code next} runs the command. */
  LogSettings(IExecutionStrategy next) {
    this.next = next;
  }

  @Override
  public int execute(ParseResult parsed) {
    CommandSpec command = ChosenCommand.of(parsed).spec();
    apply(command);
    Interruption interruption = new Interruption(command);
    try {
      return next.execute(parsed);
    } finally {
      interruption.close();
    }
  }

  private static void apply(CommandSpec spec) {
    if (Verbosity.isQuiet(spec)) {
      Configurator.setLevel(OWN, Level.WARN);
    }

    if (Verbosity.isJson(spec)) {
      writeJson();
    }
  }

  /** Whatever goes to the console goes there as JSON; levels and other appenders stay. */
  static void writeJson() {
    LoggerContext context = LoggerContext.getContext(false);
    Configuration configuration = context.getConfiguration();
    JsonTemplateLayout layout = JsonTemplateLayout.newBuilder()
        .setConfiguration(configuration)
        .setEventTemplateUri(TEMPLATE)
        .build();
    ConsoleAppender json = ConsoleAppender.newBuilder()
        .setName("json")
        .setTarget(ConsoleAppender.Target.SYSTEM_ERR)
        .setConfiguration(configuration)
        .setLayout(layout)
        .build();
    json.start();
    for (LoggerConfig logger : configuration.getLoggers().values()) {
      replaceConsole(logger, json);
    }

    context.updateLoggers();
  }

  private static void replaceConsole(LoggerConfig logger, ConsoleAppender json) {
    boolean replaced = false;
    for (Appender appender : logger.getAppenders().values().toArray(Appender[]::new)) {
      if (appender instanceof ConsoleAppender) {
        logger.removeAppender(appender.getName());
        replaced = true;
      }
    }

    if (replaced) {
      logger.addAppender(json, null, null);
    }
  }
}
