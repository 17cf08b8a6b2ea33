package org.sparkfp4.jobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * Jars that tests start in a process of its own: {@code hdfs}, {@code s3a}, {@code spark-VERSION}, as {@code
 * jobs/src/test/class-paths/resolve} fetches them. Without them a test is skipped, in CI it fails.
 */
final class ClassPath {
  private static final Path FOLDER = Path.of(System.getProperty("sparkfp4.root")).resolve("target/class-paths");

  private ClassPath() {}

  /** The class path, or the end of the calling test. */
  static String required(String name) {
    Path file = FOLDER.resolve(name);
    if (Files.exists(file)) {
      try {
        return Files.readString(file).strip();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    String reason = file + " is not there: run jobs/src/test/class-paths/resolve";
    if ("true".equals(System.getenv("CI"))) {
      return Assertions.fail(reason);
    }

    return Assumptions.abort(reason);
  }
}
