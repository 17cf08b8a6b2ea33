package org.sparkfp4;

import org.apache.spark.sql.SparkSession;

/** The one session of the module's tests. */
public final class TestSpark {
  private static SparkSession session;

  private TestSpark() {}

  public static synchronized SparkSession session() {
    if (session == null) {
      session = SparkSession.builder()
          .master("local[2]")
          .config("spark.ui.enabled", "false")
          .config("spark.sql.shuffle.partitions", "2")
          .getOrCreate();
      session.sparkContext().setLogLevel("ERROR");
    }

    return session;
  }
}
