package org.sparkfp4.keys;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.output.StagingFolder;

/**
 * What tells a whole export from one that ended early, and its files from somebody else's: before the first file a mark
 * in {@code _sparkfp4}, behind the last one {@code sparkfp4-export-ID.json} with the length of each. Runtimes ask for
 * files by name and see neither. Exports of several requests may share a folder.
 */
final class ExportRecord {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
  private static final TypeReference<Map<String, Object>> CONTENT = new TypeReference<>() {};
  private static final String FILES = "files";

  private final FileSystem fs;
  private final Path begun;
  private final Path finished;
  private final Path output;

  /** @param id the same for the same files and bytes of them only */
  ExportRecord(FileSystem fs, Path output, String id) {
    this.fs = fs;
    this.output = fs.makeQualified(output);
    this.begun = new Path(new Path(this.output, StagingFolder.NAME), "export-" + id);
    this.finished = new Path(this.output, "sparkfp4-export-" + id + ".json");
  }

  /** Whether whatever is there under the files' names is of this export. */
  boolean isOwn() throws IOException {
    return fs.exists(begun) || fs.exists(finished);
  }

  /** Whether all files are there that the finished export had. */
  boolean isFinished() throws IOException {
    if (!fs.exists(finished)) {
      return false;
    }

    Map<String, Object> content;
    try (var in = fs.open(finished)) {
      content = JSON.readValue(in.readAllBytes(), CONTENT);
    }

    if (!(content.get(FILES) instanceof Map<?, ?> files)) {
      return false;
    }

    for (Map.Entry<?, ?> file : files.entrySet()) {
      Path path = new Path(output, file.getKey().toString());
      if (!fs.exists(path) || !Long.toString(fs.getFileStatus(path).getLen()).equals(file.getValue().toString())) {
        return false;
      }
    }

    return true;
  }

  /** Leaves the mark. */
  void begin() throws IOException {
    AtomicFile.write(fs, begun, new byte[0]);
  }

  /** Writes the record and takes the mark away. */
  void finish(String format, List<Path> files) throws IOException {
    Map<String, Long> lengths = new LinkedHashMap<>();
    for (Path file : files) {
      String name = output.toUri().relativize(fs.makeQualified(file).toUri()).getPath();
      lengths.put(name, fs.getFileStatus(file).getLen());
    }

    Map<String, Object> content = new LinkedHashMap<>();
    content.put("format", format);
    content.put(FILES, lengths);
    AtomicFile.write(fs, finished, JSON.writeValueAsBytes(content));
    fs.delete(begun, false);
    if (fs.listStatus(begun.getParent()).length == 0) {
      fs.delete(begun.getParent(), false);
    }
  }
}
