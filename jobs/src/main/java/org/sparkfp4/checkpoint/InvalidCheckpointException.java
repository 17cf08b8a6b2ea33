package org.sparkfp4.checkpoint;

import java.io.IOException;

/** A folder that is no checkpoint, or not the whole of one. The message names the folder, the file and the value. */
public class InvalidCheckpointException extends IOException {
  public InvalidCheckpointException(Object folder, String problem) {
    super("Invalid checkpoint " + folder + ": " + problem);
  }

  public InvalidCheckpointException(Object folder, String problem, Throwable cause) {
    super("Invalid checkpoint " + folder + ": " + problem, cause);
  }
}
