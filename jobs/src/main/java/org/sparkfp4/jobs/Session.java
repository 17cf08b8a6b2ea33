package org.sparkfp4.jobs;

import org.apache.spark.SparkConf;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.columnar.Fp4Extensions;
import scala.Option;

/** The Spark session of a command: what spark-submit configured, with the columnar rule. */
final class Session {
  private static final String EXTENSIONS = "spark.sql.extensions";

  private Session() {}

  /** A session; the one that this JVM has, if any: a command may be called from another or from a notebook. */
  static SparkSession start(String name) {
    Option<SparkSession> running = SparkSession.getDefaultSession();
    if (running.isDefined()) {
      return running.get();
    }

    SparkConf conf = new SparkConf();
    String ours = Fp4Extensions.class.getName();
    String asked = conf.get(EXTENSIONS, "");
    if (!asked.contains(ours)) {
      conf.set(EXTENSIONS, asked.isEmpty() ? ours : asked + "," + ours);
    }

    return SparkSession.builder().config(conf).appName(name).getOrCreate();
  }
}
