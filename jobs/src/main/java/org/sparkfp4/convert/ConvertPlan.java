package org.sparkfp4.convert;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.sparkfp4.checkpoint.SourceFile;

/**
 * What a conversion does, made from headers alone.
 *
 * @param fingerprint tells plans apart whose outputs may differ in a byte
 * @param input the source's folder, a qualified path
 * @param target name of the output's layout
 * @param sources the files that are read
 * @param files the output's
 */
record ConvertPlan(
    String fingerprint, String input, String target, List<SourceFile> sources, List<ConvertFile> files)
    implements Serializable {
  ConvertPlan {
    sources = List.copyOf(sources);
    files = List.copyOf(files);
  }

  /** An item of a file that is written by parts. */
  record Part(int record, int file, int item) implements Serializable {
    String name() {
      return String.format("part-%05d", record);
    }
  }

  /** All parts; their records' numbers follow the files'. */
  List<Part> parts() {
    List<Part> parts = new ArrayList<>();
    for (int file = 0; file < files.size(); file++) {
      for (int item = 0; files.get(file).byParts() && item < files.get(file).items().size(); item++) {
        parts.add(new Part(files.size() + parts.size(), file, item));
      }
    }

    return parts;
  }

  /** The parts of a file, in its order. */
  List<Part> parts(int file) {
    return parts().stream().filter(part -> part.file() == file).toList();
  }

  /** Bytes of the tensors of each record: the files', then the parts'. */
  List<Long> recordBytes() {
    return Stream.concat(
        files.stream().map(ConvertFile::dataBytes),
        parts().stream().map(part -> files.get(part.file()).items().get(part.item()).length())).toList();
  }

  /** Bytes of the output's tensors. */
  long dataBytes() {
    return files.stream().mapToLong(ConvertFile::dataBytes).sum();
  }

  /** Bytes of those that are written twice: by parts, and put together. */
  long partBytes() {
    return files.stream().filter(ConvertFile::byParts).mapToLong(ConvertFile::dataBytes).sum();
  }
}
