package org.sparkfp4.output;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.CheckpointIndex;
import org.sparkfp4.files.Utf8Json;
import org.sparkfp4.layouts.ExternalWeights;
import org.sparkfp4.layouts.IndexFile;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;

/** The folder that a run writes into, and what earlier runs left there. */
public final class OutputFolder {
  public static final String INDEX = CheckpointIndex.NAME;

  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String SHARD =
      "model-\\d{5,}-of-\\d{5,}\\.safetensors|" + Pattern.quote(ExternalWeights.FILE);

  private final FileSystem fs;
  private final Path path;
  private final StagingFolder staging;

  public OutputFolder(FileSystem fs, Path path) {
    this.fs = fs;
    this.path = path;
    this.staging = new StagingFolder(fs, path);
  }

  public FileSystem fs() {
    return fs;
  }

  public Path path() {
    return path;
  }

  public StagingFolder staging() {
    return staging;
  }

  public Path index() {
    return new Path(path, INDEX);
  }

  public Path manifestFile() {
    return new Path(path, Manifest.FILE);
  }

  /** What the run that finished the checkpoint tells of it. It has times in it and is no part of the checkpoint. */
  public Path report() {
    return new Path(path, "sparkfp4-report.json");
  }

  /** The manifest of a finished checkpoint, or null. */
  public Manifest manifest() throws IOException {
    if (!fs.exists(manifestFile())) {
      return null;
    }

    try (InputStream in = fs.open(manifestFile())) {
      return JSON.readValue(Utf8Json.reader(in), Manifest.class);
    } catch (JsonProcessingException e) {
      throw new IOException(
          "Invalid manifest " + manifestFile() + ": " + e.getOriginalMessage() + "; choose another folder, or empty "
              + "this one yourself",
          e);
    }
  }

  /** Refuses a folder that is not a run's to write into, as {@link OwnFolder} does. */
  public void requireOwn(RunKind kind) throws IOException {
    OwnFolder.require(staging, kind, () -> manifest() != null);
  }

  /**
   * Refuses what an earlier run with another plan left, saying what differs.
   *
   * @throws IOException naming {@code --overwrite}
   */
  public void requireSamePlan(QuantizationPlan plan, Configuration conf) throws IOException {
    Manifest manifest = manifest();
    if (manifest != null && !manifest.fingerprint().equals(plan.fingerprint())) {
      throw otherPlan(
          PlanDifference.between(manifest.input(), manifest.options(), manifest.sources(), plan), "checkpoint");
    }

    QuantizationPlan begun = staging.begun(conf);
    if (begun != null && !begun.fingerprint().equals(plan.fingerprint())) {
      throw otherPlan(PlanDifference.between(begun.input(), begun.options(), begun.sources(), plan), "begun run");
    }
  }

  /**
   * Refuses a folder of somebody else's, or of another plan where that is not to be replaced.
   *
   * @throws IOException naming the folder and what is in it
   */
  public void requireFor(QuantizationPlan plan, boolean overwrite, Configuration conf) throws IOException {
    requireOwn(RunKind.CHECKPOINT);
    if (!overwrite && !isComplete(plan)) {
      requireSamePlan(plan, conf);
    }
  }

  private IOException otherPlan(String difference, String what) {
    return new IOException(
        "Cannot write to " + path + ": it holds a " + what + " of another plan (" + difference
            + "). Use another folder, or --overwrite to replace it");
  }

  /** The shards of {@code plan} that need not be written again: recorded, and there with the recorded length. */
  public Map<Integer, ShardRecord> finished(QuantizationPlan plan) throws IOException {
    Map<Integer, ShardRecord> records = new TreeMap<>(staging.finished());
    Manifest manifest = manifest();
    if (manifest != null) {
      manifest.shards().forEach(record -> records.putIfAbsent(record.shard(), record));
    }

    Map<String, Long> lengths = lengths();
    records
        .values()
        .removeIf(
            record ->
                !record.fingerprint().equals(plan.fingerprint())
                    || record.shard() >= plan.shards().size()
                    || !Long.valueOf(record.length()).equals(lengths.get(record.file())));
    return records;
  }

  /** Bytes of each file in the folder, by name; none where there is no folder. */
  public Map<String, Long> lengths() throws IOException {
    if (!fs.exists(path)) {
      return Map.of();
    }

    Map<String, Long> lengths = new TreeMap<>();
    for (FileStatus file : fs.listStatus(path)) {
      if (file.isFile()) {
        lengths.put(file.getPath().getName(), file.getLen());
      }
    }

    return lengths;
  }

  /** Whether the folder is a finished checkpoint of a plan: its index, its shards and what stands beside them. */
  public boolean isComplete(QuantizationPlan plan) throws IOException {
    Manifest manifest = manifest();
    return manifest != null
        && manifest.fingerprint().equals(plan.fingerprint())
        && finished(plan).size() == plan.shards().size()
        && lengths().keySet().containsAll(manifest.files())
        && isIndexOf(plan);
  }

  private boolean isIndexOf(QuantizationPlan plan) throws IOException {
    if (!fs.exists(index())) {
      return false;
    }

    try (InputStream in = fs.open(index())) {
      // compared as text: numbers have several types in a tree
      return JSON.readTree(Utf8Json.reader(in)).toString().equals(IndexFile.of(plan).toString());
    } catch (JsonProcessingException e) {
      return false;
    }
  }

  /** Takes the index away, so that readers see no checkpoint while its shards are replaced. */
  public void unpublish() throws IOException {
    fs.delete(index(), false);
  }

  /**
   * Removes what earlier runs wrote: the index first, so that nobody reads a mixture; then the attempts, so that no
   * straggler of theirs can give a shard its name; then shards, what stood beside them, manifest and records.
   */
  public void clear() throws IOException {
    unpublish();
    staging.sweepAttempts();
    for (String name : lengths().keySet()) {
      if (name.matches(SHARD)) {
        fs.delete(new Path(path, name), false);
      }
    }

    removeNamed(manifest());
    fs.delete(report(), false);
    fs.delete(manifestFile(), false);
    staging.clearRun();
  }

  /** Of what is there goes what the manifest names: one that somebody else wrote leads nowhere but into the folder. */
  private void removeNamed(Manifest manifest) throws IOException {
    if (manifest == null) {
      return;
    }

    Set<String> names = Set.copyOf(manifest.files());
    for (FileStatus file : fs.listStatus(path)) {
      if (file.isFile() && names.contains(file.getPath().getName())) {
        fs.delete(file.getPath(), false);
      }
    }
  }

  /** Bytes of the shards that are there, whatever run wrote them. */
  public long shardBytes() throws IOException {
    return lengths().entrySet().stream()
        .filter(file -> file.getKey().matches(SHARD))
        .mapToLong(Map.Entry::getValue)
        .sum();
  }

  /** Removes shards that the plan does not have; a runtime that takes every file would read them. */
  public void removeStrayShards(QuantizationPlan plan) throws IOException {
    removeStrayShards(plan.shards().stream().map(OutputShard::file).collect(Collectors.toSet()));
  }

  /** Removes shards of other names. */
  public void removeStrayShards(Set<String> planned) throws IOException {
    for (String name : lengths().keySet()) {
      if (name.matches(SHARD) && !planned.contains(name)) {
        fs.delete(new Path(path, name), false);
      }
    }
  }
}
