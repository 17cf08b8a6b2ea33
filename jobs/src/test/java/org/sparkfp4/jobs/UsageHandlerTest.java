package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a user reads of a command line that is wrong. */
class UsageHandlerTest {
  private final StringWriter out = new StringWriter();
  private final StringWriter err = new StringWriter();

  @ParameterizedTest
  @CsvSource(delimiter = '|', value = {
    "quantize --input a --output b --scalesearch rtn | Unknown options: '--scalesearch', 'rtn' (did you mean "
        + "--scale-search? | quantize",
    "quantize --input a --output b --dryrun | Unknown option: '--dryrun' (did you mean --dry-run? | quantize",
    "quantize --input a | Missing required option: '--output=DIR' | quantize",
    "quantize --input a --outputt=b | Missing required option: '--output=DIR', and there is no --outputt (did you mean "
        + "--output? | quantize",
    "quantize --input a --output b --max-shard-size 5XB | Invalid value for option '--max-shard-size': | quantize",
    "quantize --input a --output b --layout foo | Invalid layout: foo; known are modelopt | quantize",
    "calibrate --table activations --output s | Invalid table: activations, must be FORMAT:PATH | calibrate",
    "quantize-keys --table keys --output c | Invalid table: keys, must be FORMAT:PATH | quantize-keys",
    "verify-keys --table keys --cache c | Invalid table: keys, must be FORMAT:PATH | verify-keys",
    "calibrate --input a --output s --hessian whole | Invalid hessian: whole | calibrate",
    "convert --input a --output b --to marlin | Invalid layout: marlin; known are | convert",
    "verify --source a --quantized b --sample many | Invalid --sample: many | verify",
    "quantize --input a --output b --targets all | Invalid targets: all | quantize",
    "inspect | Missing required parameter: 'DIR' | inspect",
    "verify --quantized b | Missing required option: '--source=DIR' | verify",
    "verify-keys --cache b | Missing --source or --table | verify-keys"
  })
  void errorNearestOptionAndWhereHelpIs(String arguments, String message, String command) {
    assertThat(run(arguments)).isEqualTo(2);
    assertThat(err.toString()).startsWith(message).hasLineCount(2).endsWith("\nSee 'sparkfp4 " + command + " --help'.\n");
    assertThat(out.toString()).isEmpty();
  }

  @Test
  void commandThatIsNone() {
    assertThat(run("quantise --input a")).isEqualTo(2);
    assertThat(err.toString()).isEqualTo(
        "Unknown command: 'quantise' (did you mean quantize, quantize-keys, quantize-activations?)\n"
            + "See 'sparkfp4 --help'.\n");
  }

  @Test
  void commandThatIsMissing() {
    assertThat(Main.commandLine().setErr(new PrintWriter(err, true)).execute()).isEqualTo(2);
    assertThat(err.toString()).isEqualTo("Missing required subcommand\nSee 'sparkfp4 --help'.\n");
  }

  @Test
  void helpNamesTheLaunchersCommands() {
    assertThat(run("--help")).isZero();
    assertThat(out.toString()).contains("quantize", "Of the launcher ./sparkfp4 alone, each with --help:\n  package ")
        .contains("\n  test ", "\n  notebook ");
  }

  private int run(String arguments) {
    return Main.commandLine()
        .setOut(new PrintWriter(out, true))
        .setErr(new PrintWriter(err, true))
        .execute(arguments.split(" "));
  }
}
