package org.sparkfp4.safetensors;

import java.io.IOException;

/** A file that is no safetensors file, or not the whole of one. The message names file, tensor and value. */
public class InvalidSafetensorsException extends IOException {
  public InvalidSafetensorsException(String file, String problem) {
    super("Invalid safetensors file " + file + ": " + problem);
  }

  public InvalidSafetensorsException(String file, String problem, Throwable cause) {
    super("Invalid safetensors file " + file + ": " + problem, cause);
  }
}
