package org.sparkfp4.safetensors;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.LocatedTensor;
import org.sparkfp4.plan.SourceFile;

/** Numbers the source files of one partition, so that its rows name them by number. */
final class PartitionFiles {
  private final Path folder;
  private final Map<String, SourceFile> sources;
  private final Map<String, Integer> numbers = new HashMap<>();
  private final List<SlabFile> files = new ArrayList<>();

  PartitionFiles(Path folder, Map<String, SourceFile> sources) {
    this.folder = folder;
    this.sources = sources;
  }

  int number(LocatedTensor tensor) throws IOException {
    Integer number = numbers.get(tensor.file());
    if (number != null) {
      return number;
    }

    SourceFile source = sources.get(tensor.file());
    if (source == null) {
      throw new IOException(
          "Invalid plan: tensor " + tensor.name() + " is in " + tensor.file() + ", which its sources lack");
    }

    files.add(new SlabFile(ChildPath.of(folder, source.name()).toString(), source.length(), source.modified()));
    numbers.put(source.name(), files.size() - 1);
    return files.size() - 1;
  }

  List<SlabFile> list() {
    return files;
  }
}
