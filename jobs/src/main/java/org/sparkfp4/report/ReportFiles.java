package org.sparkfp4.report;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import org.sparkfp4.files.RawFileSystem;

/**
 * Where {@code --report FILE.html} leads: the page, and beside it {@code FILE.json} and the table {@code FILE.parquet}.
 */
public final class ReportFiles {
  private static final String ENDING = ".html";
  // within their first bytes
  private static final String MARK_OF_PAGE = "<meta name=\"generator\" content=\"Spark FP4\">";
  private static final String MARK_OF_JSON = "\"Spark FP4 ";
  private static final int MARKED = 4096;

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

  /** The folder that the report goes to. */
  public Path folder(Configuration conf) throws IOException {
    return RawFileSystem.of(page, conf).makeQualified(page).getParent();
  }

  /**
   * Refuses, before any work, to write where that cannot be, or over files that are not of an earlier report.
   *
   * @throws IOException naming what is there
   */
  public void requireOwn(Configuration conf) throws IOException {
    FileSystem fs = RawFileSystem.of(page, conf);
    Path there = nearest(fs, folder(conf));
    if (!fs.getFileStatus(there).isDirectory()) {
      throw new IOException("Cannot write the report " + page + ": " + there + " is a file; choose another name");
    }

    boolean own = fs.exists(page);
    if (own) {
      requireMark(fs, page, MARK_OF_PAGE);
    }

    if (fs.exists(beside(".json"))) {
      requireMark(fs, beside(".json"), MARK_OF_JSON);
    }

    if (!own && fs.exists(beside(".parquet"))) {
      throw foreign(beside(".parquet"));
    }

    // a store has no folders, and may let a user write below a name only
    requireWritable(fs, RawFileSystem.isObjectStore(fs) ? folder(conf) : there);
  }

  /** The folder, or what there is of the way to it. */
  private static Path nearest(FileSystem fs, Path folder) throws IOException {
    Path nearest = folder;
    while (nearest.getParent() != null && !fs.exists(nearest)) {
      nearest = nearest.getParent();
    }

    return nearest;
  }

  /** Makes a file and removes it: rights alone do not tell of a file system that is read-only, or full. */
  private void requireWritable(FileSystem fs, Path folder) throws IOException {
    Path probe = new Path(folder, "." + page.getName() + "." + UUID.randomUUID());
    try {
      fs.create(probe, false).close();
      fs.delete(probe, false);
    } catch (IOException e) {
      throw new IOException(
          "Cannot write the report " + page + ": no file can be made in " + folder + " (" + e.getMessage()
              + "); choose another folder, or mend what is wrong there", e);
    }
  }

  private void requireMark(FileSystem fs, Path file, String mark) throws IOException {
    if (fs.getFileStatus(file).isDirectory()) {
      throw foreign(file);
    }

    try (InputStream in = fs.open(file)) {
      if (!new String(in.readNBytes(MARKED), StandardCharsets.ISO_8859_1).contains(mark)) {
        throw foreign(file);
      }
    }
  }

  private IOException foreign(Path file) {
    String there = file.equals(page) ? "what is there" : "beside it is " + file.getName() + ", which";
    return new IOException("Cannot write the report " + page + ": " + there + " is of no report; choose another name");
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
