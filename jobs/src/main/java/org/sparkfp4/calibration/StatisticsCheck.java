package org.sparkfp4.calibration;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.Path;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.SerializableConfiguration;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.RawFileSystem;
import org.sparkfp4.output.FileDigest;
import org.sparkfp4.plan.PlannedImportance;

/**
 * Holds the files that errors are to be weighed by against the SHA-256 that the index has of them: a changed byte in them
 * gives other codes, and nothing else would tell. A file is a task.
 */
public final class StatisticsCheck {
  private final SparkSession spark;
  private final Statistics statistics;

  public StatisticsCheck(SparkSession spark, Statistics statistics) {
    this.spark = spark;
    this.statistics = statistics;
  }

  /**
   * Reads the files that a plan needs.
   *
   * @throws IOException naming the first one that is not what calibrate wrote
   */
  public void require(PlannedImportance importance) throws IOException {
    Set<String> needed = importance.files().stream().map(SourceFile::name).collect(Collectors.toSet());
    List<StatisticsIndex.StatisticsFile> files =
        statistics.index().files().stream().filter(file -> needed.contains(file.name())).toList();
    if (files.isEmpty()) {
      return;
    }

    SerializableConfiguration conf = new SerializableConfiguration(spark.sessionState().newHadoopConf());
    String folder = statistics.folder().toString();
    List<String> changed = JavaSparkContext.fromSparkContext(spark.sparkContext())
        .parallelize(files, files.size())
        .filter(file -> !sha256(conf, folder, file.name()).equals(file.sha256()))
        .map(StatisticsIndex.StatisticsFile::name)
        .collect();
    if (!changed.isEmpty()) {
      throw new IOException("Invalid statistics " + folder + "/" + changed.get(0)
          + ": its SHA-256 is not the one in " + Statistics.INDEX + "; calibrate anew");
    }
  }

  private static String sha256(SerializableConfiguration conf, String folder, String name) throws IOException {
    Path path = ChildPath.of(new Path(folder), name);
    try (InputStream in = RawFileSystem.of(path, conf.value()).open(path)) {
      return FileDigest.copy(name, in, OutputStream.nullOutputStream()).sha256();
    }
  }
}
