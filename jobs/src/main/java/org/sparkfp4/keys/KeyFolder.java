package org.sparkfp4.keys;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.Utf8Json;
import org.sparkfp4.output.OwnFolder;
import org.sparkfp4.output.RunKind;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.output.StagingFolder;

/** The folder of a cache: files of layers, an index that is written last, and what a run needs to be resumed. */
final class KeyFolder {
  /** The index: without it there is no cache. */
  static final String INDEX = "keys.safetensors.index.json";

  private static final String FILE = "keys-\\d{5,}-of-\\d{5,}\\.safetensors";
  private static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.INDENT_OUTPUT);

  private final FileSystem fs;
  private final Path path;
  private final StagingFolder staging;

  KeyFolder(FileSystem fs, Path path) {
    this.fs = fs;
    this.path = path;
    this.staging = new StagingFolder(fs, path);
  }

  FileSystem fs() {
    return fs;
  }

  Path path() {
    return path;
  }

  StagingFolder staging() {
    return staging;
  }

  private Path index() {
    return new Path(path, INDEX);
  }

  /** Refuses a folder that holds somebody else's files, which are never removed or overwritten. */
  void requireOwn() throws IOException {
    OwnFolder.require(staging, RunKind.CACHE, () -> read(index()) != null);
  }

  /**
   * A file of a cache.
   *
   * @param sha256 what the index says of its bytes; empty where there is no index
   */
  record IndexedFile(FileStatus status, String sha256) {}

  /**
   * The files that the index names, in its order.
   *
   * @throws InvalidKeysException if one is missing or of another length
   */
  List<IndexedFile> indexed() throws IOException {
    Map<String, Long> there = lengths(path);
    List<IndexedFile> files = new ArrayList<>();
    for (JsonNode file : read(index()).at("/metadata/files")) {
      String name = file.path("file").asText();
      if (there.getOrDefault(name, -1L) != file.path("length").asLong()) {
        throw new InvalidKeysException("Invalid cache: " + path + " has no " + name + " of "
            + file.path("length").asLong() + " bytes, which its " + INDEX + " names; make the cache anew");
      }

      files.add(new IndexedFile(fs.getFileStatus(ChildPath.of(path, name)), file.path("sha256").asText()));
    }

    return files;
  }

  /** Refuses what a run of another plan left. */
  void requireSame(KeyPlan plan) throws IOException {
    for (Path file : new Path[] {index(), staging.plan()}) {
      JsonNode there = read(file);
      if (there != null && !there.at("/metadata/options").isObject()) {
        requireIndexOfOurs(file);
      } else if (there != null && !plan.fingerprint().equals(there.at("/metadata/fingerprint").asText())) {
        List<String> differences = differences(there.at("/metadata/options"), options(plan.options()));
        throw new IOException("Cannot write to " + path + ": it holds a "
            + (file.equals(index()) ? "cache" : "begun run") + " of other "
            + (differences.isEmpty() ? "keys" : "options (" + String.join(", ", differences) + ")") + ", from "
            + there.at("/metadata/input").asText() + ". Use another folder, or --overwrite to replace it");
      }
    }
  }

  /** A plan that a crash cut short is none; an index was written whole. */
  private void requireIndexOfOurs(Path file) throws IOException {
    if (file.equals(index())) {
      throw new IOException("Cannot write to " + path + ": its " + INDEX + " is damaged, or of another program. Use another "
          + "folder, or --overwrite to replace it");
    }
  }

  private static List<String> differences(JsonNode there, JsonNode here) {
    List<String> differences = new ArrayList<>();
    here.properties().forEach(option -> {
      JsonNode other = there.path(option.getKey());
      if (!other.asText().equals(option.getValue().asText())) {
        differences.add(option.getKey() + " " + other.asText() + " there, " + option.getValue().asText() + " here");
      }
    });
    return differences;
  }

  /** A file of ours, or null where there is none; one that a crash cut short is none. */
  private JsonNode read(Path file) throws IOException {
    try (InputStream in = fs.open(file)) {
      return JSON.readTree(Utf8Json.reader(in));
    } catch (FileNotFoundException e) {
      return null;
    } catch (JsonProcessingException e) {
      return JSON.createObjectNode();
    }
  }

  boolean isComplete(KeyPlan plan) throws IOException {
    JsonNode index = read(index());
    if (index == null || !plan.fingerprint().equals(index.at("/metadata/fingerprint").asText())) {
      return false;
    }

    Map<String, Long> lengths = lengths(path);
    for (JsonNode file : index.at("/metadata/files")) {
      if (!Long.valueOf(file.path("length").asLong()).equals(lengths.get(file.path("file").asText()))) {
        return false;
      }
    }

    return !fs.exists(staging.plan());
  }

  /** The files that need not be written again, by their records' numbers: ranges, and layers behind them. */
  Map<Integer, ShardRecord> finished(KeyPlan plan) throws IOException {
    Map<Integer, ShardRecord> records = new TreeMap<>(staging.finished());
    Map<String, Long> lengths = lengths(path);
    lengths.putAll(lengths(staging.parts()));
    records.values().removeIf(record -> !record.fingerprint().equals(plan.fingerprint())
        || !Long.valueOf(record.length()).equals(lengths.get(record.file())));
    return records;
  }

  private Map<String, Long> lengths(Path folder) throws IOException {
    Map<String, Long> lengths = new TreeMap<>();
    if (fs.exists(folder)) {
      for (FileStatus file : fs.listStatus(folder)) {
        lengths.put(file.getPath().getName(), file.getLen());
      }
    }

    return lengths;
  }

  /** Makes ready to write what is missing. */
  void begin(KeyPlan plan, boolean overwrite) throws IOException {
    if (overwrite) {
      fs.delete(index(), false);
      staging.clearRun();
      fs.delete(staging.parts(), true);
      for (String name : lengths(path).keySet()) {
        if (name.matches(FILE)) {
          fs.delete(new Path(path, name), false);
        }
      }
    } else {
      fs.delete(index(), false);
    }

    staging.sweepAttempts();
    ObjectNode begun = JSON.createObjectNode();
    begun.set(RunKind.CACHE.planField(), metadata(plan));
    AtomicFile.write(fs, staging.plan(), JSON.writeValueAsBytes(begun));
  }

  private static ObjectNode metadata(KeyPlan plan) {
    ObjectNode metadata = JSON.createObjectNode()
        .put("format", CacheMetadata.FORMAT)
        .put("input", plan.input());
    metadata.set("options", options(plan.options()));
    return metadata.put("fingerprint", plan.fingerprint()).put("total_size", plan.bytes());
  }

  private static ObjectNode options(KeyOptions options) {
    return JSON.createObjectNode()
        .put("page-tokens", options.pageTokens())
        .put("pages", options.pages())
        .put("eps", options.eps() == null ? "none" : options.eps().toString())
        .put("round-norm-to-bf16", options.roundNormToBf16())
        .put("hadamard", options.hadamard())
        .put("scale-rule", options.rule().text())
        .put("model", options.model());
  }

  /** Writes the index, with which there is a cache. */
  void publish(KeyPlan plan, Map<Integer, ShardRecord> records) throws IOException {
    ObjectNode index = JSON.createObjectNode();
    ObjectNode metadata = metadata(plan);
    ArrayNode files = metadata.putArray("files");
    index.set("metadata", metadata);
    ObjectNode weights = index.putObject("weight_map");
    for (int layer = 0; layer < plan.layers().size(); layer++) {
      ShardRecord record = records.get(plan.record(layer));
      files.addObject().put("file", record.file()).put("length", record.length()).put("sha256", record.sha256());
      for (int tensor : plan.layers().get(layer).tensors()) {
        weights.put(plan.tensors().get(tensor).name(), record.file());
      }
    }

    AtomicFile.write(fs, index(), JSON.writeValueAsBytes(index));
  }
}
