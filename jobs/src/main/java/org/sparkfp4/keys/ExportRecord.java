package org.sparkfp4.keys;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.files.Utf8Json;

/**
 * What tells a whole export from one that ended early, and its files from somebody else's: before the first file a mark,
 * behind the last one {@code sparkfp4-export-ID.json} with the length of each. Runtimes ask for files by name and see
 * neither. Exports of several requests may share a folder, unless they share a page.
 */
final class ExportRecord {
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);
  private static final String FILES = "files";
  private static final String LAYERS = "layers";
  private static final String RECORD = "sparkfp4-export-[0-9a-f]+\\.json";

  private final FileSystem fs;
  private final Path begun;
  private final Path finished;
  private final Path output;

  /** @param id the same for the same files and bytes of them only */
  ExportRecord(FileSystem fs, Path output, String id) {
    this.fs = fs;
    this.output = fs.makeQualified(output);
    this.begun = new Path(this.output, "_sparkfp4-export-" + id);
    this.finished = new Path(this.output, "sparkfp4-export-" + id + ".json");
  }

  /** Whether whatever is there under the files' names is of this export. */
  boolean isOwn() throws IOException {
    return fs.exists(begun) || isFinished();
  }

  /** Whether the export was finished once; its files may be {@link #missing} since. */
  boolean isFinished() throws IOException {
    return fs.exists(finished);
  }

  /**
   * The files that are to be written. Of an export that ended early what is there is whole: it got its name at its end.
   * Of one that was finished it has the length of the record, or is to be written again; all of them if the record itself
   * is damaged.
   */
  Set<Path> missing(List<Path> files) throws IOException {
    JsonNode recorded = isFinished() ? record(finished).path(FILES) : null;
    return files.stream().filter(file -> !isWhole(file, recorded)).collect(Collectors.toSet());
  }

  private boolean isWhole(Path file, JsonNode recorded) {
    try {
      return fs.exists(file)
          && (recorded == null || recorded.path(name(file)).asLong(-1) == fs.getFileStatus(file).getLen());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The finished exports in the folder that have a file of that name, by what they are of and their records. */
  List<String> others(Path file) throws IOException {
    List<String> others = new ArrayList<>();
    for (FileStatus entry : fs.listStatus(output)) {
      if (entry.getPath().getName().matches(RECORD) && !entry.getPath().equals(finished)) {
        JsonNode other = record(entry.getPath());
        if (other.path(FILES).has(name(file))) {
          others.add(other.path(LAYERS).asText("an export") + " (" + entry.getPath().getName() + ")");
        }
      }
    }

    return others;
  }

  private JsonNode record(Path file) throws IOException {
    try (var in = fs.open(file)) {
      return JSON.readTree(Utf8Json.reader(in));
    } catch (JsonProcessingException e) {
      return JSON.createObjectNode();
    }
  }

  private String name(Path file) {
    return output.toUri().relativize(fs.makeQualified(file).toUri()).getPath();
  }

  /** Leaves the mark. */
  void begin() throws IOException {
    AtomicFile.write(fs, begun, new byte[0]);
  }

  /**
   * Writes the record and takes the mark away.
   *
   * @param layers what the export is of, for people
   */
  void finish(String format, String layers, List<Path> files) throws IOException {
    ObjectNode content = JSON.createObjectNode().put("format", format).put(LAYERS, layers);
    ObjectNode lengths = content.putObject(FILES);
    for (Path file : files) {
      lengths.put(name(file), fs.getFileStatus(file).getLen());
    }

    AtomicFile.write(fs, finished, JSON.writeValueAsBytes(content));
    fs.delete(begun, false);
  }
}
