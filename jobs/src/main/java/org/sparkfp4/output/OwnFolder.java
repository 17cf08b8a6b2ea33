package org.sparkfp4.output;

import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Refuses, before any work, to write where that would harm what is not the run's own. */
public final class OwnFolder {
  private OwnFolder() {}

  /** Asks whether a folder holds what a run finished. */
  @FunctionalInterface
  public interface Finished {
    boolean isThere() throws IOException;
  }

  /**
   * Refuses a folder that holds somebody else's files, links to them, or a begun run of another kind: nothing that Spark
   * FP4 did not write is ever removed or overwritten.
   *
   * @param staging of the folder, which is empty or yet to be made, or holds a run, begun or finished
   * @param kind of the run that is to write there
   * @throws IOException naming the folder and what is in it
   */
  public static void require(StagingFolder staging, RunKind kind, Finished finished) throws IOException {
    FileSystem fs = staging.fs();
    Path path = staging.output();
    if (!fs.exists(path)) {
      return;
    }

    if (!fs.getFileStatus(path).isDirectory()) {
      throw new IOException("Cannot write to " + path + ": it is a file; choose an empty folder, or one to be made");
    }

    LinkCheck.require(fs, path);
    staging.requireNoOtherRun(kind);
    FileStatus[] entries = fs.listStatus(path);
    if (entries.length > 0 && !fs.exists(staging.root()) && !finished.isThere()) {
      throw new IOException("Cannot write to " + path + ": it is not empty and holds no " + kind.title() + " (it has "
          + entries[0].getPath().getName() + "); choose an empty folder");
    }
  }
}
