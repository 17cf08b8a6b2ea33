package org.sparkfp4.source;

import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;

/** A folder that a plan reads from: the source, or its statistics. */
final class PlannedFolder {
  private final Path path;
  private final Map<String, SourceFile> files = new HashMap<>();

  PlannedFolder(String path, List<SourceFile> files) {
    this.path = new Path(path);
    files.forEach(file -> this.files.put(file.name(), file));
  }

  Path path() {
    return path;
  }

  SourceFile file(LocatedTensor tensor) throws IOException {
    SourceFile file = files.get(tensor.file());
    if (file == null) {
      throw new IOException(
          "Invalid plan: tensor " + tensor.name() + " is in " + tensor.file() + ", which its sources lack");
    }

    return file;
  }
}
