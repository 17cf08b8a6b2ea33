package org.sparkfp4.columnar;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.util.Optional;
import java.util.Properties;
import org.apache.spark.SparkConf;

/** The version of the Spark that this process has, and what of this product runs on it. */
public final class SparkVersion {
  private static final String BUILT_FOR = "4.1";
  private static final int OLDEST_MAJOR = 4;

  private final String version;

  SparkVersion(String version) {
    this.version = version;
  }

  /** The version that Spark's own jar names; asked without any class of Spark's that another version may lack. */
  public static SparkVersion current() {
    Properties info = new Properties();
    try (InputStream in = SparkConf.class.getClassLoader().getResourceAsStream("spark-version-info.properties")) {
      if (in != null) {
        info.load(in);
      }
    } catch (IOException e) {
      throw new UncheckedIOException("Cannot read spark-version-info.properties of Spark's jar", e);
    }

    return new SparkVersion(info.getProperty("version", "unknown"));
  }

  /**
   * Refuses a Spark that is too old.
   *
   * @throws IllegalStateException naming both versions
   */
  public void requireSupported() {
    if (version.matches("\\d+\\..*") && Integer.parseInt(version.substring(0, version.indexOf('.'))) < OLDEST_MAJOR) {
      throw new IllegalStateException(
          "Cannot run on Spark " + version + ": Spark FP4 is built for Spark " + BUILT_FOR + " and needs "
              + OLDEST_MAJOR + ".0 or later; start it with the spark-submit of a newer Spark");
    }
  }

  /** Why functions run row by row here; empty on the Spark whose physical plans the rule is built for. */
  Optional<String> reasonAgainstColumns() {
    return version.equals(BUILT_FOR) || version.startsWith(BUILT_FOR + ".")
        ? Optional.empty()
        : Optional.of("this is Spark " + version + ", and the plans of " + BUILT_FOR + " are what the rule knows; they "
            + "run row by row, with the same bytes");
  }
}
