package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What conf/ has for schedulers, each read by its own parser, and the commands in it by ours. */
class ScheduledStageTest {
  private static final Path CONF = Path.of(System.getProperty("sparkfp4.root")).resolve("conf").normalize();
  private static final ObjectMapper JSON = new ObjectMapper();

  @TempDir
  private Path folder;

  private Path calls;

  /** A spark-submit that writes down what it is called with, an argument a line, and ends with 3 where $FAILING is among it. */
  @BeforeEach
  void recordCalls() throws IOException {
    calls = folder.resolve("calls");
    script("spark/bin/spark-submit", """
        printf '%s\\n' "$@" --end-of-call >>"$CALLS"
        case " $* " in *" $FAILING "*) exit 3 ;; esac
        """);
    // the system's log
    script("bin/logger", "cat >/dev/null");
  }

  private void script(String name, String text) throws IOException {
    Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    Files.writeString(file, "#!/bin/sh\n" + text);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
  }

  @Test
  void manifestsAreTheOperatorsAndTheirArgumentsOurs() throws IOException {
    JsonNode arguments = JSON.readTree(Python.required().run("/python/kubernetes_manifest.py",
        CONF.resolve("kubernetes/quantize.yaml"), CONF.resolve("kubernetes/quantize-nightly.yaml")));

    assertThat(arguments).hasSize(2);
    for (JsonNode list : arguments) {
      requireParsed(JSON.convertValue(list, String[].class));
    }
  }

  @Test
  void tasksOfTheDagRunOneAfterTheOther() throws Exception {
    JsonNode tasks = JSON.readTree(
        Python.withAirflow().run("/python/airflow_dag.py", CONF.resolve("airflow/sparkfp4_quantize.py")));

    assertThat(tasks.findValuesAsText("id")).containsExactly("quantize", "verify");
    for (JsonNode task : tasks) {
      assertThat(sh(task.path("command").asText(), "none", Map.of(
          "INPUT", "/models/a b", "OUTPUT", "/models/$c", "REPORT", "/reports/r.html"))).isZero();
    }

    List<List<String>> submitted = submitted();
    assertThat(submitted).hasSize(2);
    assertThat(submitted.get(0)).contains("quantize", "/models/a b", "/models/$c", "/reports/r.html");
    assertThat(submitted.get(1)).contains("verify", "/models/a b", "/models/$c");
  }

  @Test
  void cronLineQuantizesThenVerifies() throws Exception {
    JsonNode entry = JSON.readTree(Python.required().run("/python/cron_entry.py", CONF.resolve("cron/sparkfp4")));
    Map<String, String> folders = Map.of(
        "INPUT", entry.at("/variables/INPUT").asText(), "OUTPUT", entry.at("/variables/OUTPUT").asText());

    assertThat(entry.path("user").asText()).isEqualTo("spark");
    assertThat(sh(entry.path("command").asText(), "none", folders)).isZero();
    assertThat(submitted()).hasSize(2);
    Files.delete(calls);
    assertThat(sh(entry.path("command").asText(), "quantize", folders)).isEqualTo(3);
    assertThat(submitted()).as("no verification of what was not made").hasSize(1);
    Files.delete(calls);
    assertThat(sh(entry.path("command").asText(), "verify", folders)).isEqualTo(3);
    assertThat(submitted()).hasSize(2);
  }

  /** Runs a command as a scheduler does; of its calls that have {@code failing} among their arguments end with 3. */
  private int sh(String command, String failing, Map<String, String> variables) throws Exception {
    ProcessBuilder builder = new ProcessBuilder("bash", "-c", command).inheritIO();
    Map<String, String> environment = builder.environment();
    environment.putAll(variables);
    environment.put("PATH", folder.resolve("bin") + ":" + environment.get("PATH"));
    environment.put("SPARK_HOME", folder.resolve("spark").toString());
    environment.put("SPARKFP4_HOME", CONF.getParent().toString());
    environment.put("CALLS", calls.toString());
    environment.put("FAILING", failing);
    return builder.start().waitFor();
  }

  /** The arguments of Main in every call; what stands before them is held to be there. */
  private List<List<String>> submitted() throws IOException {
    List<List<String>> submitted = new ArrayList<>();
    List<String> call = new ArrayList<>();
    for (String argument : Files.readAllLines(calls)) {
      if (!argument.equals("--end-of-call")) {
        call.add(argument);
        continue;
      }

      // a properties file alone would stand in the place of the cluster's own, which names the master
      assertThat(call.subList(0, 2)).containsExactly("--load-spark-defaults", "--properties-file");
      assertThat(Path.of(call.get(2))).exists();
      assertThat(call.subList(3, 6))
          .containsExactly("--class", Main.class.getName(), CONF.getParent() + "/sparkfp4.jar");
      submitted.add(List.copyOf(call.subList(6, call.size())));
      requireParsed(submitted.get(submitted.size() - 1).toArray(String[]::new));
      call.clear();
    }

    return submitted;
  }

  private static void requireParsed(String[] arguments) {
    assertThatCode(() -> Main.commandLine().parseArgs(arguments)).as(String.join(" ", arguments))
        .doesNotThrowAnyException();
  }
}
