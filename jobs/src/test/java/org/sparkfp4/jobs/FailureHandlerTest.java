package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.EOFException;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** What a user reads of each kind of failure. */
class FailureHandlerTest {
  private final StringWriter err = new StringWriter();

  static Stream<Arguments> storage() {
    String begin = "Cannot go on, a file or a file system failed: ";
    return Stream.of(
        Arguments.of(new IOException("Input/output error"), begin + "Input/output error (-v tells where)"),
        Arguments.of(new EOFException(), begin + "java.io.EOFException (-v tells where)"),
        Arguments.of(new AccessDeniedException("/a"), begin + "java.nio.file.AccessDeniedException: /a (-v tells where)"),
        Arguments.of(new FileSystemException("/a", null, "Stale file handle"),
            begin + "/a: Stale file handle (-v tells where)"),
        Arguments.of(new IOException("Cannot write /a: full"), "Cannot write /a: full"),
        Arguments.of(new UncheckedIOException("outer", new IOException("Invalid x")), "Invalid x"),
        Arguments.of(new JobException("no more of it"), "no more of it"));
  }

  @ParameterizedTest
  @MethodSource("storage")
  void whatUserOrStorageDidIsOneLine(Exception failure, String line) {
    assertThat(fail(failure)).isEqualTo(1);
    assertThat(err.toString()).isEqualTo(line + System.lineSeparator());
  }

  @Test
  void nameWithControlCharactersStaysInItsLine() {
    fail(new JobException("Invalid tensor a\nb\u001b[31m\tc"));
    assertThat(err.toString()).isEqualTo("Invalid tensor a\\nb\\u001b[31m\\tc" + System.lineSeparator());
  }

  /** Such as: Cannot invoke "String.length()" because "text" is null. */
  @Test
  void mistakeOfTheProgramIsShownWholeHoweverItsMessageBegins() {
    fail(new NullPointerException("Cannot invoke \"x\""));
    assertThat(err.toString()).contains("\tat org.sparkfp4.jobs.FailureHandlerTest").endsWith("Cannot invoke \"x\"\n");
  }

  private int fail(Exception failure) {
    return new CommandLine(new Failing(failure))
        .setExecutionExceptionHandler(new FailureHandler())
        .setErr(new PrintWriter(err, true))
        .execute();
  }

  @Command(name = "failing")
  private record Failing(Exception failure) implements Callable<Integer> {
    @Override
    public Integer call() throws Exception {
      throw failure;
    }
  }
}
