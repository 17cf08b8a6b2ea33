package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;

/** Outputs that {@code verify} reads whole: every layer is quantized again. */
final class Verified {
  private Verified() {}

  static SparkSubmitResult verify(Path source, Path output) {
    return new InProcess().runAll("verify", "--source", source, "--quantized", output, "--sample", "100%");
  }

  static void assertVerified(Path source, Path output) {
    SparkSubmitResult result = verify(source, output);
    assertThat(result.status()).as(result.out() + result.err()).isZero();
    assertThat(result.out()).contains("No difference found");
  }
}
