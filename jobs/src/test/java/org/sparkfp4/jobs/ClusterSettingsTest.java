package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import java.io.IOException;
import java.io.Reader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Properties;
import java.util.stream.Stream;
import org.apache.spark.resource.ResourceInformation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What conf/ gives a cluster: settings that exist, and the script that tells Spark of a host's GPUs. */
class ClusterSettingsTest {
  private static final Path CONF = SparkSubmit.ROOT.resolve("conf");

  @TempDir
  private Path folder;

  static List<Path> files() throws IOException {
    try (Stream<Path> files = Files.list(CONF)) {
      return files.filter(file -> file.toString().endsWith(".conf")).sorted().toList();
    }
  }

  @ParameterizedTest
  @MethodSource("files")
  void settingsOfOursAreKnown(Path file) throws IOException {
    Properties settings = new Properties();
    try (Reader reader = Files.newBufferedReader(file)) {
      settings.load(reader);
    }

    List<String> keys = List.copyOf(settings.stringPropertyNames());
    assertThat(keys).isNotEmpty();
    assertThatCode(() -> RunSettings.requireKnown(keys)).doesNotThrowAnyException();
  }

  /** Of commands too that read none of ours. */
  @Test
  void unknownSettingIsRefusedByEveryCommandWithASession() {
    SparkSubmitResult refused = new InProcess().conf("spark.fp4.devcie", "cpu")
        .run("verify", "--quantized", folder.toString(), "--manifest");

    assertThat(refused.status()).isEqualTo(1);
    assertThat(refused.err()).startsWith("Invalid setting spark.fp4.devcie: ").hasLineCount(1);
  }

  @ParameterizedTest
  @ValueSource(strings = {"0", "0\n1", "0\n1\n2\n3\n4\n5\n6\n7", "3\r"})
  void gpusAreThoseThatTheDriverNumbers(String answer) throws Exception {
    Process process = discover(answer);

    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).isZero();
    assertThat(ResourceInformation.parseJson(said).name()).isEqualTo("gpu");
    assertThat(ResourceInformation.parseJson(said).addresses()).containsExactly(answer.strip().split("\n"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "No devices were found"})
  void hostWithoutGpuOffersNone(String answer) throws Exception {
    Process process = discover(answer);

    assertThat(process.getInputStream().readAllBytes()).isEmpty();
    assertThat(new String(process.getErrorStream().readAllBytes(), StandardCharsets.UTF_8))
        .startsWith("Cannot find a GPU on this host: nvidia-smi says: " + answer);
    assertThat(process.waitFor()).isEqualTo(1);
  }

  private Process discover(String answer) throws IOException {
    Path program = folder.resolve("nvidia-smi");
    Files.writeString(program, "#!/bin/sh\ncat <<'END'\n" + answer + "\nEND\n");
    Files.setPosixFilePermissions(program, PosixFilePermissions.fromString("rwxr-xr-x"));
    ProcessBuilder builder = new ProcessBuilder(CONF.resolve("gpu-discovery").toString());
    builder.environment().merge("PATH", folder.toString(), (others, ours) -> ours + ":" + others);
    return builder.start();
  }
}
