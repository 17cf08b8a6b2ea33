package org.sparkfp4.jobs;

import org.apache.spark.sql.SparkSession;
import org.sparkfp4.columnar.SparkVersion;
import org.sparkfp4.plan.ByteSize;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.TypeConversionException;
import scala.Option;

/**
 * The entry point of {@code spark-submit} and of the launcher: {@code Main COMMAND OPTIONS}.
 *
 * <p>Exit status: 0 done, 1 failed, 2 the command line is wrong, 3 a verification found a difference, and, the
 * JVM's own, 130 stopped by Ctrl-C, 143 by a kill.
 */
@Command(
    name = "sparkfp4",
    description = "Turns mixture-of-experts checkpoints into NVFP4 with Apache Spark.",
    synopsisSubcommandLabel = "COMMAND",
    versionProvider = Version.class,
    mixinStandardHelpOptions = true,
    subcommands = {
      QuantizeCommand.class, CalibrateCommand.class, QuantizeActivationsCommand.class, ConvertCommand.class,
      VerifyCommand.class, QuantizeKeysCommand.class, VerifyKeysCommand.class, ExportKeysCommand.class,
      InspectCommand.class, SynthesizeCommand.class, DemoCommand.class
    },
    footerHeading = "%nOf the launcher ./sparkfp4 alone, each with --help:%n",
    footer = {
      "  package   Builds the jar and prints its path, for spark-submit.",
      "  test      Runs every test, or those that Maven's options choose.",
      "  notebook  Opens the notebooks in JupyterLab, or runs them."
    },
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {
      "0:done",
      "1:failed",
      "2:the command line is wrong",
      "3:a verification found a difference",
      "130, 143:stopped from outside, by Ctrl-C or by a kill"
    })
public final class Main {
  private Main() {}

  /**
   * Runs a command and returns when it is done.
   *
   * <p>Only a status other than 0 ends the JVM here: SparkSubmit turns every exception into 1, and on a cluster a driver
   * that calls exit(0) may be taken for one that died.
   */
  public static void main(String[] arguments) {
    int status = run(arguments);
    if (status != 0) {
      stopSpark();
      System.exit(status);
    }
  }

  /**
   * Before the JVM ends under it, where each task that is still under way would say so. One that ends while Spark stops is
   * told of too, with a stack trace: the command has said what failed, and that is the last word.
   */
  private static void stopSpark() {
    Option<SparkSession> running = SparkSession.getDefaultSession();
    if (running.isDefined()) {
      Interruption.silenceConsole();
      running.get().stop();
    }
  }

  /** Runs a command and gives its exit status; what it says goes to standard output, its errors to standard error. */
  static int run(String... arguments) {
    try {
      SparkVersion.current().requireSupported();
    } catch (IllegalStateException e) {
      System.err.println(e.getMessage());
      return CommandLine.ExitCode.SOFTWARE;
    }

    return commandLine().execute(arguments);
  }

  static CommandLine commandLine() {
    CommandLine line = new CommandLine(new Main());
    line.setCaseInsensitiveEnumValuesAllowed(true);
    line.setUsageHelpAutoWidth(true);
    line.registerConverter(ByteSize.class, Main::size);
    line.setExecutionStrategy(new LogSettings(new SettingNames(new CommandLine.RunLast())));
    line.setParameterExceptionHandler(new UsageHandler());
    line.setExecutionExceptionHandler(new FailureHandler());
    return line;
  }

  private static ByteSize size(String text) {
    try {
      return ByteSize.parse(text);
    } catch (IllegalArgumentException e) {
      throw new TypeConversionException(e.getMessage());
    }
  }
}
