package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ChosenCommandTest {
  @ParameterizedTest
  @CsvSource({
    "'', sparkfp4, false", "--help, sparkfp4, true", "inspect DIR, inspect, false", "inspect --help, inspect, true",
    "--version inspect DIR, inspect, true"
  })
  void isTheLastThatIsNamed(String line, String name, boolean isHelp) {
    ChosenCommand chosen = ChosenCommand.of(
        Main.commandLine().parseArgs(line.isEmpty() ? new String[0] : line.split(" ")));

    assertThat(chosen.spec().name()).isEqualTo(name);
    assertThat(chosen.isHelp()).isEqualTo(isHelp);
  }
}
