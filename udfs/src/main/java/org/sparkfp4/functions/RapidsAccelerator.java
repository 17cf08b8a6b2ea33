package org.sparkfp4.functions;

import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkConf;
import org.apache.spark.sql.internal.SQLConf;

/** What of the RAPIDS Accelerator for Apache Spark takes part in a session. */
public final class RapidsAccelerator {
  /** The plugin's class, as {@code spark.plugins} names it. */
  public static final String PLUGIN = "com.nvidia.spark.SQLPlugin";

  private static final String ENABLED = "spark.rapids.sql.enabled";

  private RapidsAccelerator() {}

  /** Whether driver and executors have it: what is sent to them may name its classes. */
  public static boolean isLoaded(SparkConf conf) {
    List<String> plugins = Arrays.asList(conf.get("spark.plugins", "").trim().split("\\s*,\\s*"));
    return plugins.contains(PLUGIN);
  }

  /** Whether it plans a session's queries; in its mode explainOnly it only says what it would plan. */
  public static boolean isActive(SparkConf conf, SQLConf session) {
    return isLoaded(conf) && Boolean.parseBoolean(session.getConfString(ENABLED, "true"));
  }
}
