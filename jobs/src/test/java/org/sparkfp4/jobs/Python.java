package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * Runs Python scripts with safetensors, ml_dtypes and numpy: the interpreter that {@code SPARKFP4_PYTHON} names. Without
 * it a test is skipped, in CI it fails.
 */
final class Python {
  private final Path interpreter;

  Python(Path interpreter) {
    this.interpreter = interpreter;
  }

  /** The interpreter, or the end of the calling test. */
  static Python required() {
    return required("SPARKFP4_PYTHON", ".ci/requirements.txt");
  }

  /** The same with Airflow, which {@code SPARKFP4_AIRFLOW_PYTHON} names. */
  static Python withAirflow() {
    return required("SPARKFP4_AIRFLOW_PYTHON", ".ci/requirements-airflow.txt");
  }

  private static Python required(String variable, String packages) {
    String named = System.getenv(variable);
    if (named != null && !named.isBlank()) {
      return new Python(Path.of(named));
    }

    String reason = variable + " names no Python with the packages of " + packages;
    if ("true".equals(System.getenv("CI"))) {
      return Assertions.fail(reason);
    }

    return Assumptions.abort(reason);
  }

  /** Runs a script of the test resources, such as {@code /python/read_back.py}, and gives what it printed. */
  String run(String script, Object... arguments) {
    Path file = Path.of(resource(script));
    List<String> command = new ArrayList<>(List.of(interpreter.toString(), file.toString()));
    for (Object argument : arguments) {
      command.add(argument.toString());
    }

    return run(command);
  }

  /** The command that runs a module's program, such as {@code moto.server}. */
  List<String> module(String name, String... arguments) {
    List<String> command = new ArrayList<>(List.of(interpreter.toString(), "-m", name));
    command.addAll(List.of(arguments));
    return command;
  }

  /** Runs a script on a text as its standard input, and gives what it printed. */
  String runOn(String input, String script) {
    try {
      Path file = Files.createTempFile("python-", ".in");
      try {
        Files.writeString(file, input);
        return run(List.of(
            "sh", "-c", "exec \"$0\" \"$1\" <\"$2\"", interpreter.toString(), Path.of(resource(script)).toString(),
            file.toString()));
      } finally {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Runs a line of Python and gives what it printed. */
  String evaluate(String line) {
    return run(List.of(interpreter.toString(), "-c", line));
  }

  private static String run(List<String> command) {
    try {
      Path output = Files.createTempFile("python-", ".out");
      try {
        Process process = new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
        int status = process.waitFor();
        String text = Files.readString(output);
        assertThat(status).as("exit status of %s%n%s", command, text).isZero();
        return text.strip();
      } finally {
        Files.delete(output);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot run " + command, e);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static URI resource(String script) {
    try {
      return Python.class.getResource(script).toURI();
    } catch (URISyntaxException e) {
      throw new IllegalArgumentException(script, e);
    }
  }
}
