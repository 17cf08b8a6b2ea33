package org.sparkfp4.output;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.sparkfp4.checkpoint.HeaderReader;
import org.sparkfp4.files.ChildPath;
import org.sparkfp4.plan.OutputShard;
import org.sparkfp4.plan.QuantizationPlan;
import org.sparkfp4.safetensors.SafetensorsHeader;
import org.sparkfp4.safetensors.TensorInfo;

/**
 * The last look at shards before they become a checkpoint: they are read back as a loader would, headers and lengths
 * only. What a run is resumed with may have changed since it was written.
 */
final class WrittenShards {
  private final FileSystem fs;
  private final Path folder;

  WrittenShards(OutputFolder output) {
    this.fs = output.fs();
    this.folder = output.path();
  }

  /**
   * Holds the shards against the plan and their records.
   *
   * @throws IOException naming the first that is not as planned
   */
  void require(QuantizationPlan plan, List<ShardRecord> records) throws IOException {
    List<FileStatus> files = new ArrayList<>();
    for (ShardRecord record : records) {
      FileStatus file = fs.getFileStatus(ChildPath.of(folder, record.file()));
      if (file.getLen() != record.length()) {
        throw wrong(record.file(), "it has " + file.getLen() + " bytes, written were " + record.length());
      }

      files.add(file);
    }

    List<SafetensorsHeader> headers = HeaderReader.read(fs, files);
    for (int i = 0; i < headers.size(); i++) {
      require(plan.shards().get(records.get(i).shard()), headers.get(i));
    }
  }

  private void require(OutputShard shard, SafetensorsHeader header) throws IOException {
    List<TensorInfo> planned = shard.items().stream().flatMap(item -> item.outputs().stream()).toList();
    if (header.tensors().size() != planned.size()) {
      throw wrong(shard.file(), "it has " + header.tensors().size() + " tensors, planned are " + planned.size());
    }

    // as a set: an empty tensor has no place of its own
    Set<TensorInfo> found = Set.copyOf(header.tensors());
    for (TensorInfo tensor : planned) {
      if (!found.contains(tensor)) {
        throw wrong(shard.file(), "it lacks " + tensor + ", which is planned");
      }
    }
  }

  private IOException wrong(String file, String what) {
    return new IOException("Cannot publish " + folder + ": " + file + " is not as it was written: " + what
        + "; remove that file and start the same command again");
  }
}
