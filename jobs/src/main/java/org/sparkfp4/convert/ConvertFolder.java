package org.sparkfp4.convert;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;
import java.util.HashSet;
import java.util.Map;
import java.util.TreeMap;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.files.Utf8Json;
import org.sparkfp4.output.Manifest;
import org.sparkfp4.output.OutputFolder;
import org.sparkfp4.output.RunKind;
import org.sparkfp4.output.ShardRecord;
import org.sparkfp4.safetensors.SafetensorsHeader;

/** The folder that a conversion writes into, and what earlier runs left there. */
final class ConvertFolder {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final OutputFolder output;

  ConvertFolder(OutputFolder output) {
    this.output = output;
  }

  OutputFolder output() {
    return output;
  }

  private FileSystem fs() {
    return output.fs();
  }

  /** Refuses a folder that holds somebody else's files, or a begun run of another command. */
  private void requireOwn() throws IOException {
    output.requireOwn(RunKind.CONVERSION);
  }

  /** Whether the folder is a finished checkpoint of a plan: its index, its files and what stands beside them. */
  boolean isComplete(String fingerprint) throws IOException {
    Manifest manifest = output.manifest();
    if (manifest == null || !manifest.fingerprint().equals(fingerprint) || !fs().exists(output.index())) {
      return false;
    }

    Map<String, Long> lengths = output.lengths();
    return lengths.keySet().containsAll(manifest.files())
        && manifest.shards().stream()
            .allMatch(record -> Long.valueOf(record.length()).equals(lengths.get(record.file())));
  }

  /** Refuses a folder of somebody else's, or of another plan where that is not to be replaced. */
  void requireFor(String fingerprint, String target, boolean overwrite) throws IOException {
    requireOwn();
    if (!overwrite && !isComplete(fingerprint)) {
      requireSame(fingerprint, target);
    }
  }

  /**
   * Refuses what an earlier run with another plan left.
   *
   * @throws IOException naming {@code --overwrite}
   */
  void requireSame(String fingerprint, String target) throws IOException {
    Manifest manifest = output.manifest();
    if (manifest != null && !manifest.fingerprint().equals(fingerprint)) {
      throw other("checkpoint", manifest.options() == null ? "" : manifest.options().layout(), manifest.input(), target);
    }

    JsonNode begun = begun();
    if (begun != null && !begun.path("fingerprint").asText().equals(fingerprint)) {
      throw other("begun run", begun.path("target").asText(), begun.path("input").asText(), target);
    }
  }

  private IOException other(String what, String layout, String input, String target) {
    return new IOException("Cannot write to " + output.path() + ": it holds a " + what + " of another plan (layout "
        + layout + " from " + input + " there, layout " + target + " now, or the source or an option changed). Use another"
        + " folder, or --overwrite to replace it");
  }

  /** What a run that was begun says of itself; null where there is none, or a crash cut it short. */
  private JsonNode begun() throws IOException {
    try (InputStream in = fs().open(output.staging().plan())) {
      return JSON.readTree(Utf8Json.reader(in)).path(RunKind.CONVERSION.planField());
    } catch (FileNotFoundException | JsonProcessingException e) {
      return null;
    }
  }

  /** Files and parts that need not be written again, by their records' numbers. */
  Map<Integer, ShardRecord> finished(ConvertPlan plan) throws IOException {
    Map<Integer, ShardRecord> records = new TreeMap<>(output.staging().finished());
    Manifest manifest = output.manifest();
    if (manifest != null) {
      manifest.shards().forEach(record -> records.putIfAbsent(record.shard(), record));
    }

    Map<String, Long> lengths = output.lengths();
    Path parts = output.staging().parts();
    if (fs().exists(parts)) {
      for (FileStatus part : fs().listStatus(parts)) {
        lengths.put(part.getPath().getName(), part.getLen());
      }
    }

    records.values().removeIf(record -> !record.fingerprint().equals(plan.fingerprint())
        || !Long.valueOf(record.length()).equals(lengths.get(record.file())));
    return records;
  }

  /** Makes ready to write what is missing. */
  void begin(String fingerprint, String input, String target, boolean overwrite) throws IOException {
    if (overwrite) {
      output.clear();
      fs().delete(output.staging().parts(), true);
    } else {
      output.unpublish();
      output.staging().sweepAttempts();
    }

    JsonNode begun = JSON.createObjectNode().set(
        RunKind.CONVERSION.planField(),
        JSON.createObjectNode().put("fingerprint", fingerprint).put("target", target).put("input", input));
    AtomicFile.write(fs(), output.staging().plan(), JSON.writeValueAsBytes(begun));
  }

  /**
   * Reads the headers of finished files back, as a loader would, and holds them against the plan.
   *
   * @throws IOException naming a file that is not as planned
   */
  void requireWritten(ConvertPlan plan, Map<Integer, ShardRecord> records) throws IOException {
    for (int i = 0; i < plan.files().size(); i++) {
      ConvertFile file = plan.files().get(i);
      if (!records.containsKey(i)) {
        throw new IllegalStateException("Cannot publish " + output.path() + ": no task wrote " + file.name());
      }

      SafetensorsHeader header = SafetensorsHeader.read(fs(), ChildPath.of(output.path(), file.name()));
      if (!new HashSet<>(header.tensors()).equals(new HashSet<>(file.tensors()))) {
        throw new IOException("Cannot publish " + output.path() + ": " + file.name() + " is not as it was written; remove "
            + "that file and start the same command again");
      }
    }
  }
}
