package org.sparkfp4.checkpoint;

import java.io.Serializable;
import java.util.Objects;

/**
 * A file of the source as it was when its header was read; a run refuses a source that changed since.
 *
 * @param name its name inside the checkpoint's folder
 * @param length its bytes
 * @param modified its modification time, milliseconds since the epoch
 */
public record SourceFile(String name, long length, long modified) implements Serializable {
  public SourceFile {
    Objects.requireNonNull(name, "name");
  }
}
