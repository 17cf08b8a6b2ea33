package org.sparkfp4.calibration;

import java.io.IOException;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.output.OwnFolder;
import org.sparkfp4.output.RunKind;
import org.sparkfp4.output.StagingFolder;

/** The folder that statistics are written into. Without its index it has none, whatever files are there. */
final class StatisticsOutput {
  private static final String FILE = "statistics-\\d{5,}-of-\\d{5,}\\.safetensors";

  private final FileSystem fs;
  private final Path path;
  private final StagingFolder staging;

  StatisticsOutput(FileSystem fs, Path path) {
    this.fs = fs;
    this.path = path;
    this.staging = new StagingFolder(fs, path);
  }

  FileSystem fs() {
    return fs;
  }

  Path path() {
    return path;
  }

  StagingFolder staging() {
    return staging;
  }

  private Path index() {
    return new Path(path, Statistics.INDEX);
  }

  /** Refuses a folder that holds somebody else's files. */
  void requireOwn() throws IOException {
    OwnFolder.require(staging, RunKind.STATISTICS, () -> fs.exists(index()));
  }

  /**
   * The statistics that are there already, if they are of the same activations; null where there are none.
   *
   * @throws IOException naming {@code --overwrite} if they are of others
   */
  StatisticsIndex finished(Configuration conf, HessianKind hessian, String model, List<SourceFile> inputs)
      throws IOException {
    if (!fs.exists(index())) {
      return null;
    }

    StatisticsIndex there = Statistics.open(conf, path).index();
    if (inputs.isEmpty() || !there.isOf(hessian, model, inputs)) {
      throw new IOException("Cannot write to " + path + ": it holds statistics of other activations, another model or "
          + "another --hessian (" + there.hessian() + "). Use another folder, or --overwrite to replace them");
    }

    return there;
  }

  /** Removes statistics and what an earlier run left of them, the index first. */
  void clear() throws IOException {
    fs.delete(index(), false);
    staging.sweepAttempts();
    for (FileStatus file : fs.listStatus(path)) {
      if (file.getPath().getName().matches(FILE)) {
        fs.delete(file.getPath(), false);
      }
    }
  }

  /** Writes the index, which makes the folder's files statistics. */
  void publish(StatisticsIndex content) throws IOException {
    AtomicFile.write(fs, index(), Statistics.JSON.writerWithDefaultPrettyPrinter().writeValueAsBytes(content));
  }
}
