package org.sparkfp4.tables;

import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/** Opens tables that are named FORMAT:PATH. */
public final class SourceTable {
  private SourceTable() {}

  /**
   * Opens a table, which reads its schema.
   *
   * @param name its format and its path, such as {@code parquet:/data/keys}
   * @throws IllegalArgumentException in one line, naming the table and the remedy, if Spark cannot
   */
  public static Dataset<Row> open(SparkSession spark, String name) {
    int colon = requireName(name).indexOf(':');
    try {
      return spark.read().format(name.substring(0, colon)).load(name.substring(colon + 1));
    } catch (Exception e) {
      // Scala declares none of the checked ones that it throws here
      throw new IllegalArgumentException("Cannot open table " + name + ": " + reason(e)
          + "; check its format and its path, and that a format from elsewhere is on the class path (spark-submit "
          + "--packages)", e);
    }
  }

  /**
   * The name, where it is one.
   *
   * @throws IllegalArgumentException if it is not FORMAT:PATH
   */
  public static String requireName(String name) {
    int colon = name.indexOf(':');
    if (colon < 1 || colon == name.length() - 1) {
      throw new IllegalArgumentException(
          "Invalid table: " + name + ", must be FORMAT:PATH, such as parquet:/data/table");
    }

    return name;
  }

  private static String reason(Exception e) {
    String message = e.getMessage();
    return message == null || message.isBlank() ? e.toString() : message.strip().lines().findFirst().orElseThrow();
  }
}
