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

  /** Of commands too that read none of ours, and of those that need no session. */
  @ParameterizedTest
  @ValueSource(strings = {"verify --manifest --quantized x", "inspect x", "synthesize --family qwen3_moe --output x",
      "export-keys --cache x --tokens t --output y --format sglang", "quantize --input x --output y"})
  void unknownSettingIsRefusedByEveryCommand(String command) {
    SparkSubmitResult refused = new InProcess().conf("spark.fp4.devcie", "cpu").run(command.split(" "));

    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.out()).isEmpty();
    assertThat(refused.err()).startsWith("Invalid setting spark.fp4.devcie: there is none of this name; there are ")
        .endsWith("\nSee 'sparkfp4 " + command.split(" ")[0] + " --help'.\n");
  }

  /** As spark-submit hands it to a JVM that has no session yet. */
  @Test
  void unknownSettingOfTheJvmIsRefused() {
    System.setProperty("spark.fp4.devcie", "cpu");
    try {
      assertThat(new InProcess().run("inspect", folder.toString()).err())
          .startsWith("Invalid setting spark.fp4.devcie: ");
      assertThat(new InProcess().run("inspect", "--help").status()).isZero();
    } finally {
      System.clearProperty("spark.fp4.devcie");
    }
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
