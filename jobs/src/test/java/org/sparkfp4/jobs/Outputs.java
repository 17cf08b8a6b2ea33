package org.sparkfp4.jobs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What runs left in their output folders. */
final class Outputs {
  private Outputs() {}

  /** Asserts that two finished outputs have the same shards and the same index. */
  static void assertSame(Path expected, Path actual) throws IOException {
    assertSame(expected, actual, name -> name.contains("safetensors"));
  }

  /** Asserts that two outputs, of which an index may name the input, have the same safetensors files. */
  static void assertSameTensors(Path expected, Path actual) throws IOException {
    assertSame(expected, actual, name -> name.endsWith(".safetensors"));
  }

  private static void assertSame(Path expected, Path actual, Predicate<String> names) throws IOException {
    Map<String, Path> files = byName(expected, names);
    assertThat(files).isNotEmpty();
    assertThat(byName(actual, names).keySet()).isEqualTo(files.keySet());
    for (String name : files.keySet()) {
      assertThat(Files.mismatch(expected.resolve(name), actual.resolve(name)))
          .as("first byte of %s in %s that differs from %s", name, actual, expected)
          .isEqualTo(-1);
    }
  }

  private static Map<String, Path> byName(Path folder, Predicate<String> names) {
    return list(folder, names)
        .collect(Collectors.toMap(Outputs::name, Function.identity(), (one, other) -> one, TreeMap::new));
  }

  /** Inode and time of change of every file in a folder whose name has the ending: a rewritten file has others. */
  static Map<String, String> identities(Path folder, String ending) {
    return list(folder, name -> name.endsWith(ending)).collect(Collectors.toMap(Outputs::name, Outputs::identity));
  }

  private static String identity(Path file) {
    try {
      BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
      return attributes.fileKey() + " " + attributes.lastModifiedTime();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** How many shards of a run that has not ended are recorded. */
  static int records(Path output) {
    Path records = output.resolve("_sparkfp4/shards");
    return Files.isDirectory(records) ? (int) list(records, name -> name.matches("\\d+\\.json")).count() : 0;
  }

  /** Names of the shards that those records stand for. */
  static Map<String, String> recorded(Path output) throws IOException {
    Map<String, String> identities = identities(output, ".safetensors");
    StringBuilder records = new StringBuilder();
    for (Path record : list(output.resolve("_sparkfp4/shards"), name -> name.matches("\\d+\\.json")).toList()) {
      records.append(Files.readString(record));
    }

    identities.keySet().removeIf(shard -> records.indexOf("\"" + shard + "\"") < 0);
    return identities;
  }

  private static Stream<Path> list(Path folder, Predicate<String> names) {
    try (Stream<Path> files = Files.list(folder)) {
      return files.filter(file -> names.test(name(file))).toList().stream();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static String name(Path file) {
    return file.getFileName().toString();
  }
}
