package org.sparkfp4.checkpoint;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;

/** Whether an index and the headers of its shards agree. A stale index would lose tensors without a word. */
final class IndexCheck {
  private IndexCheck() {}

  static void check(Path folder, CheckpointIndex index, List<LocatedTensor> tensors)
      throws InvalidCheckpointException {
    Map<String, String> holders = new HashMap<>();
    for (LocatedTensor tensor : tensors) {
      String other = holders.put(tensor.name(), tensor.file());
      if (other != null) {
        throw new InvalidCheckpointException(
            folder, "tensor " + tensor.name() + " is in two shards, " + other + " and " + tensor.file());
      }
    }

    for (Map.Entry<String, String> entry : index.weightMap().entrySet()) {
      String holder = holders.remove(entry.getKey());
      if (holder == null) {
        throw stale(folder, "maps tensor " + entry.getKey() + " to " + entry.getValue() + ", which does not hold it");
      }

      if (!holder.equals(entry.getValue())) {
        throw stale(
            folder, "maps tensor " + entry.getKey() + " to " + entry.getValue() + ", but it is in " + holder);
      }
    }

    for (LocatedTensor tensor : tensors) {
      if (holders.containsKey(tensor.name())) {
        throw stale(folder, "lacks tensor " + tensor.name() + ", which is in " + tensor.file());
      }
    }
  }

  private static InvalidCheckpointException stale(Path folder, String problem) {
    return new InvalidCheckpointException(
        folder, CheckpointIndex.NAME + " " + problem + "; the index is of other shards, download both again");
  }
}
