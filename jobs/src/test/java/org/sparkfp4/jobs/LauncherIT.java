package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The launcher, called from another folder than its own, one with a space in its name. */
class LauncherIT {
  private static final Path ROOT = Path.of(System.getProperty("sparkfp4.root")).toAbsolutePath().normalize();
  private static final Path SHARD =
      ROOT.resolve("jobs/src/test/resources/golden/qwen3_moe_bf16/model-00001-of-00003.safetensors");

  @TempDir
  private Path temporary;

  private Path folder;

  @BeforeEach
  void makeFolder() throws IOException {
    folder = Files.createDirectory(temporary.resolve("a folder"));
  }

  @Test
  void packagePrintsPathOfJarOnly() throws Exception {
    SparkSubmitResult result = launch("package");

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).isEqualTo(ROOT.resolve("jobs/target/sparkfp4-" + Version.current() + ".jar") + "\n");
  }

  @Test
  void relativePathIsTheCallers() throws Exception {
    Files.createDirectory(folder.resolve("my model"));
    Files.copy(SHARD, folder.resolve("my model/model.safetensors"));

    SparkSubmitResult result = launch("inspect", "my model");

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).startsWith("file:" + folder + "/my model\n").contains("BF16");
    assertThat(result.err()).isEmpty();
  }

  /** Where no locale is set, as in containers, Java takes file names for ASCII. */
  @Test
  void folderWithOtherLettersIsFoundInAnyLocale() throws Exception {
    String script = "export LC_ALL=C && name=$'mod\\xc3\\xa8le' && mkdir \"$name\" && cp \"$1\" \"$name/model.safetensors\""
        + " && \"$2\" inspect \"$name\"";

    SparkSubmitResult result =
        run(List.of("bash", "-c", script, "bash", SHARD.toString(), ROOT.resolve("sparkfp4").toString()));

    assertThat(result.status()).as(result.err()).isZero();
    assertThat(result.out()).startsWith("file:" + folder + "/mod\u00e8le\n");
  }

  @Test
  void settingThatIsNoneIsOneLine() throws Exception {
    SparkSubmitResult result = launch("--conf", "spark.fp4.read", "inspect", "x");

    assertThat(result.status()).isEqualTo(2);
    assertThat(result.err()).isEqualTo("Invalid option: --conf takes KEY=VALUE, not \"spark.fp4.read\"\n");
  }

  /** Of a clone that was never built: help is told without building, installing or opening anything. */
  @ParameterizedTest
  @CsvSource({"package, --help", "package, -h", "test, --help", "notebook, --help"})
  void helpOfItsOwnCommandsDoesNothing(String command, String option) throws Exception {
    Path clone = Files.createDirectory(folder.resolve("clone"));
    Files.copy(ROOT.resolve("sparkfp4"), clone.resolve("sparkfp4"), StandardCopyOption.COPY_ATTRIBUTES);
    Files.copy(ROOT.resolve("pom.xml"), clone.resolve("pom.xml"));

    SparkSubmitResult result = run(List.of(clone.resolve("sparkfp4").toString(), command, option));

    assertThat(result.status()).isZero();
    assertThat(result.out()).startsWith("Usage: ./sparkfp4 " + command + " [OPTION OF ").contains("\n  -");
    assertThat(result.err()).isEmpty();
    assertThat(clone.toFile().list()).containsExactlyInAnyOrder("sparkfp4", "pom.xml");
  }

  @Test
  void helpListsItsOwnCommands() throws Exception {
    assertThat(launch("--help").out()).contains("\n  package ", "\n  test ", "\n  notebook ", "\n  quantize ");
  }

  @Test
  void exitStatusIsTheCommands() throws Exception {
    assertThat(launch("inspect").status()).isEqualTo(2);
  }

  private SparkSubmitResult launch(String... arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(ROOT.resolve("sparkfp4").toString()));
    command.addAll(List.of(arguments));
    return run(command);
  }

  private SparkSubmitResult run(List<String> command) throws IOException, InterruptedException {
    Path out = temporary.resolve("out");
    Path err = temporary.resolve("err");
    int status = new ProcessBuilder(command)
        .directory(folder.toFile())
        .redirectOutput(out.toFile())
        .redirectError(err.toFile())
        .start()
        .waitFor();
    return new SparkSubmitResult(status, Files.readString(out), Files.readString(err));
  }
}
