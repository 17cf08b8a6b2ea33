package org.sparkfp4.output;

import java.io.Serializable;
import java.util.UUID;
import org.apache.hadoop.fs.Path;

/**
 * Where the tasks of a run write, and how.
 *
 * @param folder the output's folder
 * @param commit how files get their names: auto, rename or direct
 * @param run the run's own id
 */
public record TaskOutput(String folder, String commit, String run) implements Serializable {
  /** That of a run which begins now. */
  public static TaskOutput ofNewRun(Path folder, String commit) {
    return new TaskOutput(folder.toString(), commit, UUID.randomUUID().toString().substring(0, 8));
  }
}
