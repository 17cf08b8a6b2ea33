package org.sparkfp4.jobs;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Assumptions;

/**
 * What {@code notebooks/start --install} leaves in target/notebooks: Jupyter, its Java kernel, PySpark. Without it a test
 * is skipped, for it is more than a gigabyte; in CI it fails.
 */
final class Notebooks {
  private static final Path ROOT = Path.of(System.getProperty("sparkfp4.root")).toAbsolutePath().normalize();

  private Notebooks() {}

  /** The folder of the notebooks, or the end of the calling test. */
  static Path folder() {
    required();
    return ROOT.resolve("notebooks");
  }

  /** The Python that has PySpark, or the end of the calling test. */
  static Python python() {
    return new Python(required().resolve("bin/python"));
  }

  private static Path required() {
    Path environment = ROOT.resolve("target/notebooks/python");
    // written last
    if (Files.exists(environment.resolve("requirements.txt"))) {
      return environment;
    }

    String reason = environment + " is not there: notebooks/start --install makes it";
    if ("true".equals(System.getenv("CI"))) {
      return Assertions.fail(reason);
    }

    return Assumptions.abort(reason);
  }
}
