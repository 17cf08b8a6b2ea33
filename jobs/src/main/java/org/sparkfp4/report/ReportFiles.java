package org.sparkfp4.report;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.safetensors.RawFileSystem;

/**
 * Where {@code --report FILE.html} leads: the page, and beside it {@code FILE.json} and the table {@code FILE.parquet}.
 */
public final class ReportFiles {
  private static final String ENDING = ".html";

  private final Path page;

  private ReportFiles(Path page) {
    this.page = page;
  }

  /**
   * The files of a page.
   *
   * @throws IllegalArgumentException if its name does not end in {@code .html}
   */
  public static ReportFiles of(String page) {
    if (!page.endsWith(ENDING) || page.endsWith("/" + ENDING) || page.equals(ENDING)) {
      throw new IllegalArgumentException(
          "Invalid --report: " + page + ", must be the name of a file that ends in .html");
    }

    return new ReportFiles(new Path(page));
  }

  /**
   * Refuses, before any work, to write over a table that is not of an earlier report.
   *
   * @throws IOException naming it
   */
  public void requireOwn(Configuration conf) throws IOException {
    FileSystem fs = RawFileSystem.of(page, conf);
    if (!fs.exists(page) && fs.exists(beside(".parquet"))) {
      throw new IOException("Cannot write the report " + page + ": beside it is " + beside(".parquet").getName()
          + ", which is of no report; choose another name");
    }
  }

  private Path beside(String ending) {
    String name = page.getName();
    String other = name.substring(0, name.length() - ENDING.length()) + ending;
    return page.getParent() == null ? new Path(other) : new Path(page.getParent(), other);
  }

  /** Writes page, JSON and table; what was there is replaced. */
  public void write(RunReport report, SparkSession spark) throws IOException {
    Configuration conf = spark.sessionState().newHadoopConf();
    FileSystem fs = RawFileSystem.of(page, conf);
    write(fs, page, ReportPage.html(report).getBytes(StandardCharsets.UTF_8));
    write(fs, beside(".json"), report.json());
    spark.createDataFrame(report.rows().stream().map(LayerTable::row).toList(), LayerTable.SCHEMA)
        .coalesce(1)
        .write()
        .mode(SaveMode.Overwrite)
        .parquet(fs.makeQualified(beside(".parquet")).toString());
  }

  private static void write(FileSystem fs, Path file, byte[] content) throws IOException {
    try (OutputStream out = fs.create(file, true)) {
      out.write(content);
    }
  }
}
