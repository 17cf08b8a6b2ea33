package org.sparkfp4.columnar;

import org.apache.spark.sql.SparkSession;

/** One Spark for all tests of the module, with two sessions: with the extensions and without. */
final class TestSpark {
  private static final SparkSession EXTENDED = SparkSession.builder()
      .master("local[2]")
      .appName("columnar")
      .config("spark.sql.shuffle.partitions", "2")
      .withExtensions(new Fp4Extensions())
      .getOrCreate();
  private static final SparkSession PLAIN = plainSession();

  private TestSpark() {}

  /** A session of its own conf, with the extensions. */
  static SparkSession extended() {
    return EXTENDED.newSession();
  }

  /** A session of its own conf, of a Spark that was started without the extensions. */
  static SparkSession plain() {
    return PLAIN.newSession();
  }

  private static SparkSession plainSession() {
    SparkSession.clearActiveSession();
    SparkSession.clearDefaultSession();
    return SparkSession.builder().getOrCreate();
  }
}
