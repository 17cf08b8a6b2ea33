package org.sparkfp4.jobs;

import java.util.Collection;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.spark.network.util.JavaUtils;
import org.apache.spark.sql.RuntimeConfig;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.kernels.KernelChoice;
import org.sparkfp4.progress.ProgressView;
import org.sparkfp4.source.SafetensorsSource;

/**
 * The settings {@code spark.fp4.*} of a run, all of them held to what they may be before anything is done: most are
 * read by tasks, when an output may have been given up already.
 *
 * @param unitBytes source bytes of a unit above which it is cut by rows
 * @param kernels device and tier
 * @param commit how shards get their names
 * @param progress how progress is shown
 */
record RunSettings(long unitBytes, KernelChoice kernels, String commit, String progress) {
  private static final String UNIT_BYTES = "spark.fp4.unitBytes";
  private static final String COMMIT = "spark.fp4.commit";
  private static final String COLUMNAR = "spark.fp4.columnar";
  private static final String PROGRESS = "spark.fp4.progress";
  private static final String PREFIX = "spark.fp4.";

  // the paths are properties of a JVM, which spark-submit gives the driver as settings
  private static final Set<String> KNOWN = Stream.concat(
      Stream.of(KernelChoice.DEVICE_KEY, KernelChoice.TIER_KEY, PREFIX + "native.path", PREFIX + "cuda.path", UNIT_BYTES,
          COMMIT, COLUMNAR, PROGRESS),
      SafetensorsSource.settings().stream()).collect(Collectors.toCollection(TreeSet::new));

  /**
   * The session's settings.
   *
   * @throws IllegalArgumentException naming a setting, its value and what it may be
   */
  static RunSettings of(SparkSession spark) {
    RuntimeConfig conf = spark.conf();
    SafetensorsSource.requireSettings(key -> conf.get(key, null));
    requireColumnar(conf.get(COLUMNAR, "auto"));
    return new RunSettings(
        unitBytes(conf.get(UNIT_BYTES, "256m")),
        KernelChoice.of(key -> conf.get(key, null)),
        conf.get(COMMIT, "auto"),
        progress(conf.get(PROGRESS, "auto")));
  }

  /**
   * The same for the names alone. One that is mistyped would leave its default in force, and nothing would say so.
   *
   * @throws IllegalArgumentException naming a setting that there is not
   */
  static void requireKnown(Collection<String> keys) {
    for (String key : keys) {
      if (key.startsWith(PREFIX) && !KNOWN.contains(key)) {
        throw new IllegalArgumentException(
            "Invalid setting " + key + ": there is none of this name; there are " + String.join(", ", KNOWN));
      }
    }
  }

  private static long unitBytes(String value) {
    long bytes;
    try {
      bytes = JavaUtils.byteStringAsBytes(value);
    } catch (IllegalArgumentException e) {
      throw new IllegalArgumentException("Invalid " + UNIT_BYTES + ": " + value + "; give a size such as 256m", e);
    }

    if (bytes < 1 || bytes > Integer.MAX_VALUE - 8) {
      throw new IllegalArgumentException(
          "Invalid " + UNIT_BYTES + ": " + value + "; give 1 to " + (Integer.MAX_VALUE - 8) + " bytes");
    }

    return bytes;
  }

  private static String progress(String value) {
    ProgressView.of(value).close();
    return value;
  }

  private static void requireColumnar(String value) {
    if (!value.equals("auto") && !value.equals("off")) {
      throw new IllegalArgumentException("Invalid " + COLUMNAR + ": " + value + "; it is auto or off");
    }
  }
}
