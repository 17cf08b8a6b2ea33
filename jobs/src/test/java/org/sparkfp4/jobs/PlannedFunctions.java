package org.sparkfp4.jobs;

import org.apache.spark.sql.SparkSession;

/** A program for SparkSubmit: the SQL functions by name, then a command of Main, in one session. */
public final class PlannedFunctions {
  private PlannedFunctions() {}

  public static void main(String[] command) {
    SparkSession spark = Session.start("planned functions");
    DequantizeQueries.run(spark, "auto");
    spark.sql("SELECT unit, nvfp4_amax(payload, 'BF16') AS amax FROM rows").collectAsList();
    int status = Main.run(command);
    if (status != 0) {
      System.exit(status);
    }
  }
}
