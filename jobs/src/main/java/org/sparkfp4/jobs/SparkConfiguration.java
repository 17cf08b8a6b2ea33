package org.sparkfp4.jobs;

import org.apache.hadoop.conf.Configuration;
import org.apache.spark.SparkConf;
import org.apache.spark.deploy.SparkHadoopUtil;

/** Hadoop's configuration as a Spark job of this JVM would see it, for commands that need no session. */
final class SparkConfiguration {
  private SparkConfiguration() {}

  /** Hadoop's own files and what SparkSubmit was given under {@code spark.hadoop.*}. */
  static Configuration hadoop() {
    return SparkHadoopUtil.get().newConfiguration(new SparkConf());
  }
}
