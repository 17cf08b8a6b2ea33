package org.sparkfp4.kernels;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.Properties;
import java.util.function.Supplier;
import org.apache.spark.SparkEnv;

/**
 * Loads one native library, once a JVM: from the file that a key names (a system property or a Spark configuration; no
 * other file is then tried), else from the resource {@code <arch>/<os>/lib<name>.so} of the class path, by way of a
 * temporary file that is gone once it is loaded.
 *
 * <p>A library of another version than the jar's is refused: the two share no stable interface.
 */
final class LibraryLoader {
  private final String name;
  private final String title;
  private final String pathKey;
  private final Supplier<String> libraryVersion;
  private final String remedy;
  private Outcome outcome;

  /** What loading came to, kept so that it is tried once: a reason without an error means there is no library. */
  private record Outcome(String absence, RuntimeException failure) {}

  /**
   * @param name of the file, less lib and .so
   * @param title for messages
   * @param pathKey names the library's file explicitly
   * @param libraryVersion asks the library for its version, once it is loaded
   * @param remedy how to do without the library
   */
  LibraryLoader(String name, String title, String pathKey, Supplier<String> libraryVersion, String remedy) {
    this.name = name;
    this.title = title;
    this.pathKey = pathKey;
    this.libraryVersion = libraryVersion;
    this.remedy = remedy;
  }

  /**
   * Loads the library unless it is there already.
   *
   * @return empty where it is loaded, else why this class path has none
   * @throws IllegalStateException where there is one that cannot be used
   */
  synchronized Optional<String> absence() {
    if (outcome == null) {
      outcome = load();
    }

    if (outcome.failure != null) {
      // A fresh one, for the stack of this call.
      throw new IllegalStateException(outcome.failure.getMessage(), outcome.failure);
    }

    return Optional.ofNullable(outcome.absence);
  }

  private Outcome load() {
    try {
      String override = override();
      if (override != null) {
        loadFile(override);
        return new Outcome(null, null);
      }

      return loadResource();
    } catch (RuntimeException e) {
      return new Outcome(null, e);
    }
  }

  private String override() {
    String path = System.getProperty(pathKey);
    SparkEnv env = SparkEnv.get();
    return path != null || env == null ? path : env.conf().get(pathKey, null);
  }

  private void loadFile(String override) {
    Path file = Path.of(override).toAbsolutePath();
    if (!Files.isRegularFile(file)) {
      throw new IllegalStateException("Cannot load " + title + ": " + pathKey + " names no file: " + file);
    }

    load(file, file.toString());
  }

  private Outcome loadResource() {
    String resource = System.getProperty("os.arch") + "/" + System.getProperty("os.name") + "/lib" + name + ".so";
    try (InputStream in = LibraryLoader.class.getClassLoader().getResourceAsStream(resource)) {
      if (in == null) {
        return new Outcome("the class path has no " + resource, null);
      }

      Path copy = Files.createTempFile("lib" + name + "-", ".so");
      try {
        Files.copy(in, copy, StandardCopyOption.REPLACE_EXISTING);
        load(copy, resource + " unpacked to " + copy);
      } finally {
        // The mapping stays.
        Files.deleteIfExists(copy);
      }

      return new Outcome(null, null);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot unpack " + title + " " + resource + " to "
          + System.getProperty("java.io.tmpdir") + " (-Djava.io.tmpdir=DIR, or " + pathKey + " names a file)", e);
    }
  }

  private void load(Path file, String origin) {
    String found;
    try {
      System.load(file.toString());
      found = libraryVersion.get();
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException("Cannot load " + title + " " + origin + " on " + System.getProperty("os.arch")
          + ": " + e.getMessage() + " (" + pathKey + " names another file, " + remedy + ")", e);
    }

    String expected = version();
    if (!found.equals(expected)) {
      throw new IllegalStateException("Cannot use " + title + " " + origin + ": they are of version " + found
          + ", this jar is of version " + expected);
    }
  }

  private static String version() {
    Properties properties = new Properties();
    try (InputStream in = LibraryLoader.class.getResourceAsStream("version.properties")) {
      properties.load(in);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read version.properties of this jar", e);
    }

    return properties.getProperty("version");
  }
}
