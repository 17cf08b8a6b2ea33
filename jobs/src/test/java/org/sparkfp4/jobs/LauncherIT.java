package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

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

  @Test
  void exitStatusIsTheCommands() throws Exception {
    assertThat(launch("inspect").status()).isEqualTo(2);
  }

  private SparkSubmitResult launch(String... arguments) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(List.of(ROOT.resolve("sparkfp4").toString()));
    command.addAll(List.of(arguments));
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
