package org.sparkfp4.source;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.checkpoint.SourceFile;
import org.sparkfp4.files.ChildPath;

/** Numbers the files of one partition, so that its rows name them by number. */
final class PartitionFiles {
  private final Map<String, Integer> numbers = new HashMap<>();
  private final List<SlabFile> files = new ArrayList<>();

  /**
   * The number of the file that a tensor is in.
   *
   * @throws IOException if its folder has no such file
   */
  int number(PlannedFolder folder, LocatedTensor tensor) throws IOException {
    SourceFile source = folder.file(tensor);
    String path = ChildPath.of(folder.path(), source.name()).toString();
    Integer number = numbers.get(path);
    if (number != null) {
      return number;
    }

    files.add(new SlabFile(path, source.length(), source.modified()));
    numbers.put(path, files.size() - 1);
    return files.size() - 1;
  }

  List<SlabFile> list() {
    return files;
  }
}
