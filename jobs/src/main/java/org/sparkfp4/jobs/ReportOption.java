package org.sparkfp4.jobs;

import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.report.ReportFiles;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The option for a report; a picocli mixin. */
final class ReportOption {
  @Option(names = "--report", paramLabel = "FILE.html", converter = FolderText.class,
      description = "Write a page with plots, and beside it FILE.json and the table FILE.parquet, a row a layer.")
  private String file;

  /** Whether a report is wanted. */
  boolean isGiven() {
    return file != null;
  }

  /**
   * Where the report goes, seen to be writable; null where none is wanted.
   *
   * @param checkpoints folders that it must not be in, qualified
   */
  ReportFiles files(CommandSpec spec, Configuration conf, Path... checkpoints) throws IOException {
    if (file == null) {
      return null;
    }

    try {
      ReportFiles files = ReportFiles.of(file);
      for (Path checkpoint : checkpoints) {
        SeparateFolders.requireOutside(files.folder(conf), checkpoint);
      }

      files.requireOwn(conf);
      return files;
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }
}
