package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import picocli.CommandLine.ParseResult;

class ResumeHintTest {
  @Test
  void commandIsTheOneThatWasGivenWithoutOverwrite() {
    ParseResult parsed = Main.commandLine().parseArgs(
        "quantize", "--input", "my model", "--output", "it's", "--overwrite", "--targets", "mlp");

    assertThat(ResumeHint.command(parsed.subcommand().commandSpec()))
        .isEqualTo("sparkfp4 quantize --input 'my model' --output 'it'\\''s' --targets mlp");
  }
}
