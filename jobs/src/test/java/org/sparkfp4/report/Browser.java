package org.sparkfp4.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * A headless Chromium: the {@code chromium} of the PATH, or what {@code SPARKFP4_CHROMIUM} names. Without it a test is
 * skipped, in CI it fails.
 */
public final class Browser {
  private static final List<String> FLAGS = List.of(
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
      "--enable-logging=stderr");

  private final String program;
  private final Path work;

  private Browser(String program, Path work) {
    this.program = program;
    this.work = work;
  }

  /** What a page was like. */
  public record Visit(String dom, List<String> console) {}

  /** The browser, or the end of the calling test; profiles go below {@code work}. */
  public static Browser required(Path work) {
    String named = System.getenv("SPARKFP4_CHROMIUM");
    String program = named != null && !named.isBlank() ? named : onPath();
    if (program != null) {
      return new Browser(program, work);
    }

    String reason = "SPARKFP4_CHROMIUM names no Chromium, and there is none on the PATH";
    if ("true".equals(System.getenv("CI"))) {
      return Assertions.fail(reason);
    }

    return Assumptions.abort(reason);
  }

  private static String onPath() {
    return Stream.of(System.getenv("PATH").split(":"))
        .map(folder -> Path.of(folder, "chromium"))
        .filter(Files::isExecutable)
        .map(Path::toString)
        .findFirst()
        .orElse(null);
  }

  /** Opens a page in a window of that width and gives what became of it. */
  public Visit open(Path page, int width, boolean dark) {
    List<String> result = run(page, width, 1000, dark, "--dump-dom");
    List<String> console = result.get(1).lines().filter(line -> line.contains(":CONSOLE")).toList();
    return new Visit(result.get(0), console);
  }

  /** Takes a picture of a page. */
  public Path picture(Path page, int width, int height, boolean dark, Path png) {
    run(page, width, height, dark, "--screenshot=" + png);
    return png;
  }

  private List<String> run(Path page, int width, int height, boolean dark, String what) {
    try {
      Path profile = Files.createTempDirectory(work, "chromium");
      List<String> command = new ArrayList<>(List.of(program));
      command.addAll(FLAGS);
      command.addAll(List.of(
          "--user-data-dir=" + profile, "--window-size=" + width + "," + height,
          "--blink-settings=preferredColorScheme=" + (dark ? 0 : 1), what, page.toUri().toString()));
      Path out = profile.resolve("out");
      Path err = profile.resolve("err");
      Process process = new ProcessBuilder(command).redirectOutput(out.toFile()).redirectError(err.toFile()).start();
      if (!process.waitFor(120, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return Assertions.fail("The browser did not end: " + command);
      }

      assertThat(process.exitValue()).as("%s%n%s", command, Files.readString(err)).isZero();
      return List.of(Files.readString(out), Files.readString(err));
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot run " + program, e);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
