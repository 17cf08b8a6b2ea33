package org.sparkfp4.files;

import org.apache.hadoop.fs.Path;

/** Files of a folder by their names as they are: Hadoop takes what stands before a colon for a scheme. */
public final class ChildPath {
  private ChildPath() {}

  /**
   * The file called {@code name} directly in {@code folder}.
   *
   * @throws IllegalArgumentException if a name is none, that of the folder itself or of the one above it, or a path
   */
  public static Path of(Path folder, String name) {
    if (name == null || name.isEmpty() || name.equals(".") || name.equals("..") || name.contains("/")) {
      throw new IllegalArgumentException(
          "Invalid name of a file in " + folder + ": \"" + name + "\", must be a name directly in that folder");
    }

    return new Path(folder, new Path(null, null, name));
  }
}
