package org.sparkfp4.kernels;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.Properties;
import org.apache.spark.SparkEnv;

/**
 * Loads {@code libsparkfp4.so}, once a JVM: from the file that {@value #PATH_KEY} names (a system property or a Spark
 * configuration; no other file is then tried), else from the resource {@code <arch>/<os>/libsparkfp4.so} of the class
 * path, by way of a temporary file that is gone once it is loaded.
 *
 * <p>A library of another version than the jar's is refused: the two share no stable interface.
 */
public final class NativeLibrary {
  /** Names the library's file explicitly. */
  public static final String PATH_KEY = "spark.fp4.native.path";

  private static final String FILE = "libsparkfp4.so";

  private static Outcome outcome;

  /** What loading came to, kept so that it is tried once: a reason without an error means there is no library. */
  private record Outcome(String absence, RuntimeException failure) {}

  private NativeLibrary() {}

  /**
   * Has the operating system read a range of a file mapping ahead. A hint: does nothing where there is no library.
   *
   * @param address of the first byte, of any alignment
   * @param bytes how many
   */
  public static void prefetch(long address, long bytes) {
    if (absence().isEmpty()) {
      NativeBinding.prefetch(address, bytes);
    }
  }

  /**
   * Loads the library unless it is there already.
   *
   * @return empty where it is loaded, else why this class path has none
   * @throws IllegalStateException where there is one that cannot be used
   */
  static synchronized Optional<String> absence() {
    if (outcome == null) {
      outcome = load();
    }

    if (outcome.failure != null) {
      // A fresh one, for the stack of this call.
      throw new IllegalStateException(outcome.failure.getMessage(), outcome.failure);
    }

    return Optional.ofNullable(outcome.absence);
  }

  private static Outcome load() {
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

  private static String override() {
    String path = System.getProperty(PATH_KEY);
    SparkEnv env = SparkEnv.get();
    return path != null || env == null ? path : env.conf().get(PATH_KEY, null);
  }

  private static void loadFile(String override) {
    Path file = Path.of(override).toAbsolutePath();
    if (!Files.isRegularFile(file)) {
      throw new IllegalStateException("Cannot load the native kernels: " + PATH_KEY + " names no file: " + file);
    }

    load(file, file.toString());
  }

  private static Outcome loadResource() {
    String resource = System.getProperty("os.arch") + "/" + System.getProperty("os.name") + "/" + FILE;
    try (InputStream in = NativeLibrary.class.getClassLoader().getResourceAsStream(resource)) {
      if (in == null) {
        return new Outcome("the class path has no " + resource, null);
      }

      Path copy = Files.createTempFile("libsparkfp4-", ".so");
      try {
        Files.copy(in, copy, StandardCopyOption.REPLACE_EXISTING);
        load(copy, resource + " unpacked to " + copy);
      } finally {
        // The mapping stays.
        Files.deleteIfExists(copy);
      }

      return new Outcome(null, null);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot unpack the native kernels " + resource + " to "
          + System.getProperty("java.io.tmpdir") + " (-Djava.io.tmpdir=DIR, or " + PATH_KEY + " names a file)", e);
    }
  }

  private static void load(Path file, String origin) {
    String found;
    try {
      System.load(file.toString());
      found = NativeBinding.version();
    } catch (UnsatisfiedLinkError e) {
      throw new IllegalStateException("Cannot load the native kernels " + origin + " on "
          + System.getProperty("os.arch") + ": " + e.getMessage() + " (" + PATH_KEY
          + " names another file, spark.fp4.cpu.tier=java does without)", e);
    }

    String expected = version();
    if (!found.equals(expected)) {
      throw new IllegalStateException("Cannot use the native kernels " + origin + ": they are of version " + found
          + ", this jar is of version " + expected);
    }
  }

  private static String version() {
    Properties properties = new Properties();
    try (InputStream in = NativeLibrary.class.getResourceAsStream("version.properties")) {
      properties.load(in);
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read version.properties of this jar", e);
    }

    return properties.getProperty("version");
  }
}
