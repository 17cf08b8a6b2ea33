package org.sparkfp4.files;

import java.io.FileNotFoundException;
import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** Asks, before a source file is read, whether it is still the one that was planned. */
public final class UnchangedFile {
  private UnchangedFile() {}

  /**
   * Refuses a file that changed.
   *
   * @param length its bytes when it was planned
   * @param modified its modification time then, milliseconds since the epoch
   * @throws SourceChangedException when it is gone or either differs
   */
  public static void require(FileSystem fileSystem, Path path, long length, long modified) throws IOException {
    FileStatus status;
    try {
      status = fileSystem.getFileStatus(path);
    } catch (FileNotFoundException e) {
      SourceChangedException gone = new SourceChangedException(path.toString(), "it is gone since it was planned");
      gone.initCause(e);
      throw gone;
    }

    if (status.getLen() != length) {
      throw new SourceChangedException(
          path.toString(), "it has " + status.getLen() + " bytes, but had " + length + " when it was planned");
    }

    if (status.getModificationTime() != modified) {
      throw new SourceChangedException(
          path.toString(),
          "it was modified at " + status.getModificationTime() + ", after it was planned as of " + modified);
    }
  }
}
