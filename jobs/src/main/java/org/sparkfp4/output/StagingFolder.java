package org.sparkfp4.output;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.sparkfp4.files.AtomicFile;
import org.sparkfp4.files.Utf8Json;
import org.sparkfp4.plan.InvalidPlanException;
import org.sparkfp4.plan.PlanFile;
import org.sparkfp4.plan.QuantizationPlan;

/**
 * The folder {@code _sparkfp4} inside an output: what a run needs in order to be resumed. It is gone from a finished
 * checkpoint.
 *
 * <pre>
 * _sparkfp4/lock              who writes here
 * _sparkfp4/plan.json         the plan
 * _sparkfp4/amax.json         amax of the units that are cut by rows
 * _sparkfp4/shards/00003.json a finished shard's record
 * _sparkfp4/attempts/         shards that are being written
 * _sparkfp4/parts/            of a conversion: parts of files that are put together of them
 * _sparkfp4/modelopt/         of an output in a layout of stacked experts: the checkpoint that it is converted from
 * </pre>
 */
public final class StagingFolder {
  public static final String NAME = "_sparkfp4";

  private static final Pattern FIRST_FIELD = Pattern.compile("\\{\\s*\"(\\w+)\"");
  private static final Logger LOG = LoggerFactory.getLogger(StagingFolder.class);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final FileSystem fs;
  private final Path output;
  private final Path root;

  public StagingFolder(FileSystem fs, Path output) {
    this.fs = fs;
    this.output = output;
    this.root = new Path(output, NAME);
  }

  FileSystem fs() {
    return fs;
  }

  /** The folder that this one is in. */
  Path output() {
    return output;
  }

  public Path root() {
    return root;
  }

  public Path lock() {
    return new Path(root, "lock");
  }

  public Path plan() {
    return new Path(root, "plan.json");
  }

  public Path amax() {
    return new Path(root, "amax.json");
  }

  /** Parts that are there until the file that is put together of them is whole. */
  public Path parts() {
    return new Path(root, "parts");
  }

  private Path records() {
    return new Path(root, "shards");
  }

  private Path attempts() {
    return new Path(root, "attempts");
  }

  /**
   * Where an attempt at a shard is written. The run's own id is part of the name: an attempt of an earlier run that is
   * still alive on a lost executor must not write into the same file.
   */
  Path attempt(String run, int shard, long task) {
    return new Path(attempts(), String.format("%05d-%s-%d", shard, run, task));
  }

  /**
   * The plan of a run that was begun; null where there is none that can be read. A plan that the loss of power cut
   * short is none: records say themselves what plan they are of.
   */
  public QuantizationPlan begun(Configuration conf) throws IOException {
    if (!fs.exists(plan())) {
      return null;
    }

    try {
      return PlanFile.read(conf, plan());
    } catch (InvalidPlanException e) {
      LOG.warn("Ignoring {}: it is no plan, and is written again", plan());
      return null;
    }
  }

  /**
   * Refuses what a run of another kind began there, which would be lost.
   *
   * @throws IOException naming the folder
   */
  void requireNoOtherRun(RunKind own) throws IOException {
    if (!fs.exists(plan())) {
      return;
    }

    String begin;
    try (InputStream in = fs.open(plan())) {
      begin = new String(in.readNBytes(64), StandardCharsets.ISO_8859_1);
    }

    Matcher first = FIRST_FIELD.matcher(begin);
    for (RunKind kind : RunKind.values()) {
      if (kind != own && first.lookingAt() && first.group(1).equals(kind.planField())) {
        throw new IOException("Cannot write to " + output + ": another command began a run there; finish it, remove the "
            + "folder, or choose another");
      }
    }
  }

  /** Removes what earlier runs began and did not finish. */
  public void sweepAttempts() throws IOException {
    fs.delete(attempts(), true);
  }

  /** Removes the plan and the records of earlier runs; the lock stays. */
  public void clearRun() throws IOException {
    fs.delete(records(), true);
    fs.delete(amax(), false);
    fs.delete(plan(), false);
  }

  /** Removes the folder with all that is in it. */
  public void remove() throws IOException {
    fs.delete(root, true);
  }

  /** Leaves a shard's record; the shard itself must stand under its final name. */
  public void write(ShardRecord record) throws IOException {
    Path file = new Path(records(), String.format("%05d.json", record.shard()));
    AtomicFile.write(fs, file, JSON.writeValueAsBytes(record));
  }

  /** The records that finished tasks left, by shard; a record that a crash cut short is not one. */
  public Map<Integer, ShardRecord> finished() throws IOException {
    Map<Integer, ShardRecord> finished = new TreeMap<>();
    if (!fs.exists(records())) {
      return finished;
    }

    for (FileStatus file : fs.listStatus(records(), path -> path.getName().matches("\\d{5,}\\.json"))) {
      try (InputStream in = fs.open(file.getPath())) {
        ShardRecord record = JSON.readValue(Utf8Json.reader(in), ShardRecord.class);
        if (record != null) {
          finished.put(record.shard(), record);
        }
      } catch (JsonProcessingException e) {
        LOG.warn("Ignoring {}: it is no shard record; the shard is written again", file.getPath());
      }
    }

    return finished;
  }
}
