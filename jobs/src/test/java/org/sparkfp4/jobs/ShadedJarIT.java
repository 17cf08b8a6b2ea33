package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.jar.JarFile;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/** The jar for spark-submit: nothing that Spark brings, and a list of what else is in it. */
class ShadedJarIT {
  private static final Path JAR = Path.of(System.getProperty("sparkfp4.jar"));

  /** Two copies of a class are two classes, or one of a version that the other side does not expect. */
  @Test
  void noClassIsSparksToo() throws IOException {
    Set<String> ours = classes(JAR);
    Set<String> twice = new TreeSet<>();
    for (String jar : Files.readString(JAR.resolveSibling("spark.classpath")).strip().split(":")) {
      Set<String> both = classes(Path.of(jar));
      both.retainAll(ours);
      both.forEach(name -> twice.add(name + " of " + Path.of(jar).getFileName()));
    }

    assertThat(ours).contains("org/sparkfp4/jobs/Main.class", "picocli/CommandLine.class");
    assertThat(twice).isEmpty();
  }

  @Test
  void noticeNamesEveryComponentAndItsLicence() throws IOException {
    String notice = new String(read("META-INF/THIRD-PARTY.txt"), StandardCharsets.UTF_8);
    for (JsonNode component : components()) {
      if (component.path("group").asText().equals("org.sparkfp4")) {
        continue;
      }

      String coordinates = String.join(
          ":", component.path("group").asText(), component.path("name").asText(), component.path("version").asText());
      assertThat(notice).contains(coordinates);
      assertThat(component.path("licenses")).as("licences of %s", coordinates).isNotEmpty();
    }
  }

  /** What the bill of materials says is in the jar. */
  private static List<JsonNode> components() throws IOException {
    List<JsonNode> components = new ArrayList<>();
    new ObjectMapper().readTree(read("META-INF/sbom/sparkfp4.cdx.json")).path("components").forEach(components::add);
    assertThat(components).isNotEmpty();
    return components;
  }

  private static byte[] read(String entry) throws IOException {
    try (JarFile jar = new JarFile(JAR.toFile()); InputStream in = jar.getInputStream(jar.getEntry(entry))) {
      return in.readAllBytes();
    }
  }

  private static Set<String> classes(Path file) throws IOException {
    try (JarFile jar = new JarFile(file.toFile())) {
      return jar.stream()
          .map(entry -> entry.getName())
          .filter(name -> name.endsWith(".class") && !name.startsWith("META-INF/") && !name.endsWith("-info.class"))
          .collect(Collectors.toCollection(HashSet::new));
    }
  }
}
