package org.sparkfp4.progress;

import java.time.Duration;
import org.slf4j.LoggerFactory;

/** Where a run's progress is seen. Used by one thread at a time. */
public interface ProgressView extends AutoCloseable {
  /** Says how far the run is; called at its beginning and whenever it has got on. */
  void show(Progress progress);

  /** The run has ended, well or not. */
  @Override
  void close();

  /**
   * The view that a setting asks for.
   *
   * @param setting of {@code spark.fp4.progress}: line (one line of a terminal, drawn again and again), log (lines of
   *     the log), off, or auto: line where standard error is a terminal, else log
   * @throws IllegalArgumentException if it is none of these
   */
  static ProgressView of(String setting) {
    return switch (setting) {
      case "auto" -> Terminal.isStandardError() ? line() : log();
      case "line" -> line();
      case "log" -> log();
      case "off" -> new NoView();
      default ->
          throw new IllegalArgumentException(
              "Invalid spark.fp4.progress: " + setting + "; it is auto, line, log or off");
    };
  }

  private static ProgressView line() {
    return new TerminalLine(System.err);
  }

  private static ProgressView log() {
    return new LogLines(LoggerFactory.getLogger(Progress.class), Duration.ofSeconds(10));
  }
}
